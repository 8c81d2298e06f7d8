//! Tables that fit the terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};

/// How a column behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Words, which wrap where the terminal is narrow.
    Text(&'static str),
    /// An id or a date, which stays whole as long as anything else can give way.
    Whole(&'static str),
    /// A figure, aligned right, never wrapped.
    Figure(&'static str),
}

/// Rows under named columns, without borders.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new<const N: usize>(columns: [Column; N]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(columns.map(Column::title));
        for (place, column) in columns.into_iter().enumerate() {
            let Some(inner) = table.column_mut(place) else { continue };
            inner.set_padding((0, 2));
            match column {
                Column::Text(_) => {}
                Column::Whole(_) => {
                    inner.set_constraint(ColumnConstraint::ContentWidth);
                }
                Column::Figure(_) => {
                    inner
                        .set_constraint(ColumnConstraint::ContentWidth)
                        .set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        Self(table)
    }

    /// Adds a row; the cells must already be safe for a terminal.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.0.add_row(cells);
    }

    /// The lines of the table, at most `width` columns wide where a width is given and there is any way to keep to it.
    pub(crate) fn lines(&mut self, width: Option<u16>) -> Vec<String> {
        match width {
            Some(width) => self.0.set_width(width),
            None => self.0.set_content_arrangement(ContentArrangement::Disabled),
        };
        self.0.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Text(title) | Self::Whole(title) | Self::Figure(title) => title,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new([Column::Whole("Id"), Column::Text("Title"), Column::Figure("Size")]);
        table.row(["ses_1".into(), "a title of several words".into(), "1.5 KiB".into()]);
        table.row(["ses_22".into(), "b".into(), "12 B".into()]);
        table
    }

    #[test]
    fn without_a_width_rows_stay_on_one_line() {
        let lines = sample().lines(None);
        assert_eq!(
            lines,
            [
                "Id      Title                        Size",
                "ses_1   a title of several words  1.5 KiB",
                "ses_22  b                            12 B",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_wraps_the_words_and_not_the_figures() {
        for width in [30, 24] {
            let lines = sample().lines(Some(width));
            assert!(lines.iter().all(|line| line.chars().count() <= usize::from(width)), "{lines:#?}");
            assert!(lines.iter().any(|line| line.ends_with("1.5 KiB")), "{lines:#?}");
        }
    }

    #[test]
    fn no_width_is_too_narrow_to_print() {
        for width in 1..12 {
            assert!(!sample().lines(Some(width)).is_empty(), "{width}");
        }
    }
}
