//! Lines of a list that may be long: fixed columns, so that nothing has to be held until the end is known.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One column but the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    pub(crate) title: &'static str,
    pub(crate) width: usize,
    pub(crate) is_figure: bool,
}

/// The columns of a list. The last one takes what is left of the terminal and is cut there.
pub(crate) struct Listing<'a> {
    pub(crate) fixed: &'a [Fixed],
    pub(crate) last: &'static str,
    pub(crate) width: Option<u16>,
}

/// Columns between two cells.
const GAP: usize = 2;

/// The last column is never cut shorter than this.
const LAST_MIN: usize = 12;

impl Listing<'_> {
    /// The line with the titles.
    pub(crate) fn header(&self) -> String {
        let titles: Vec<_> = self.fixed.iter().map(|column| column.title).collect();
        self.line(&titles, self.last)
    }

    /// One line; the cells must be safe for a terminal. A cell wider than its column moves the others of its line.
    pub(crate) fn line(&self, cells: &[impl AsRef<str>], last: &str) -> String {
        let mut line = String::new();
        for (column, cell) in self.fixed.iter().zip(cells) {
            let cell = cell.as_ref();
            let padding = " ".repeat(column.width.saturating_sub(cell.width()));
            let [before, after] =
                if column.is_figure { [padding.as_str(), ""] } else { ["", padding.as_str()] };
            line.extend([before, cell, after, &" ".repeat(GAP)]);
        }
        let room = self.width.map(|width| usize::from(width).saturating_sub(line.width()).max(LAST_MIN));
        line.push_str(&cut(last, room));
        line.truncate(line.trim_end().len());
        line
    }
}

fn cut(text: &str, room: Option<usize>) -> String {
    let Some(room) = room.filter(|room| text.width() > *room) else { return text.to_owned() };
    let mut shown = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > room {
            break;
        }
        shown.push(character);
    }
    shown.push('…');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: [Fixed; 2] = [
        Fixed { title: "Id", width: 6, is_figure: false },
        Fixed { title: "Size", width: 8, is_figure: true },
    ];

    #[test]
    fn the_last_cell_is_cut_at_the_edge_and_wide_characters_count_double() {
        let listing = Listing { fixed: &FIXED, last: "Title", width: Some(32) };
        assert_eq!(listing.header(), "Id          Size  Title");
        for (title, shown) in [
            ("short", "ses_1    1.5 KiB  short"),
            ("a title that is too long", "ses_1    1.5 KiB  a title that …"),
            ("天気予報の表示を日本語に", "ses_1    1.5 KiB  天気予報の表…"),
        ] {
            let line = listing.line(&["ses_1", "1.5 KiB"], title);
            assert!(line.width() <= 32, "{line}");
            assert_eq!(line, shown);
        }
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let listing = Listing { fixed: &FIXED, last: "Title", width: None };
        let long = "x".repeat(500);
        assert!(listing.line(&["a", "b"], &long).ends_with(&long));
    }
}
