//! Tables that fit the terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};
use unicode_width::UnicodeWidthStr;

/// How a column behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Words, which wrap where the terminal is narrow.
    Text(&'static str),
    /// An id or a date, which stays whole as long as anything else can give way.
    Whole(&'static str),
    /// A figure, aligned right; only its title wraps.
    Figure(&'static str),
}

/// Rows under named columns, without borders.
pub(crate) struct Table {
    inner: comfy_table::Table,
    columns: Vec<Column>,
    /// Widest cell of each column, its title left out.
    widest: Vec<u16>,
}

/// Columns of space after a column.
const GAP: u16 = 2;

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new<const N: usize>(columns: [Column; N]) -> Self {
        let mut inner = comfy_table::Table::new();
        inner.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        inner.set_header(columns.map(Column::title));
        for (place, column) in columns.into_iter().enumerate() {
            let Some(cells) = inner.column_mut(place) else { continue };
            cells.set_padding((0, GAP));
            if matches!(column, Column::Figure(_)) {
                cells.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { inner, columns: columns.into(), widest: vec![0; N] }
    }

    /// Adds a row; the cells must already be safe for a terminal.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        for (widest, cell) in self.widest.iter_mut().zip(&cells) {
            *widest = (*widest).max(u16::try_from(cell.width()).unwrap_or(u16::MAX));
        }
        self.inner.add_row(cells);
    }

    /// The lines of the table, none where it has no row. Where a width is given they keep to it: words and titles wrap, ids and figures do not; where that is
    /// too narrow for a table, each row becomes a paragraph.
    pub(crate) fn lines(&mut self, width: Option<u16>) -> Vec<String> {
        if self.inner.row_count() == 0 {
            return Vec::new();
        }
        match width {
            None => {
                self.inner.set_content_arrangement(ContentArrangement::Disabled);
            }
            Some(width) => {
                let least: Vec<_> = self
                    .columns
                    .iter()
                    .zip(&self.widest)
                    .map(|(column, widest)| column.least(*widest))
                    .collect();
                if least.iter().fold(0, |sum: u16, least| sum.saturating_add(*least))
                    > width.saturating_add(GAP)
                {
                    return self.paragraphs();
                }
                self.inner.set_width(width);
                for (place, least) in least.into_iter().enumerate() {
                    let Some(cells) = self.inner.column_mut(place) else { continue };
                    cells.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
                }
            }
        }
        self.inner.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// A line for each cell that holds something, and an empty line between two rows. The terminal wraps them.
    fn paragraphs(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for row in self.inner.row_iter() {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            let cells = self
                .columns
                .iter()
                .zip(row.cell_iter())
                .map(|(column, cell)| (column.title(), cell.content()));
            lines.extend(cells.filter(|(_, cell)| !cell.is_empty()).map(|(title, cell)| match title {
                "" => cell,
                title => format!("{title}: {cell}"),
            }));
        }
        lines
    }
}

/// Words wrap down to this many columns.
const TEXT_LEAST: u16 = 12;

impl Column {
    /// The narrowest that it may become where its widest cell has `widest` columns, the gap included.
    fn least(self, widest: u16) -> u16 {
        let title = self.title().split(' ').map(UnicodeWidthStr::width).max().unwrap_or_default();
        let cells = match self {
            Self::Text(_) => widest.min(TEXT_LEAST),
            Self::Whole(_) | Self::Figure(_) => widest,
        };
        cells.max(u16::try_from(title).unwrap_or(u16::MAX)).saturating_add(GAP)
    }

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
        for width in [40, 31] {
            let lines = sample().lines(Some(width));
            assert!(lines.iter().all(|line| line.chars().count() <= usize::from(width)), "{lines:#?}");
            assert!(lines.iter().any(|line| line.ends_with("1.5 KiB")), "{lines:#?}");
        }
    }

    #[test]
    fn where_no_table_fits_each_row_is_a_paragraph() {
        for width in [1, 20] {
            let lines = sample().lines(Some(width));
            let paragraph =
                ["Id: ses_1", "Title: a title of several words", "Size: 1.5 KiB", "", "Id: ses_22"];
            assert_eq!(lines[..5], paragraph, "{width}");
        }
    }
}
