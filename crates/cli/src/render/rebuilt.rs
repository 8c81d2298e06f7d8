//! What a rebuild did.

use headwater_upkeep::rebuild::{RebuildReport, Way};

use super::size::{count, share, size};
use super::table::{Column, Table};
use crate::failure::Failure;
use crate::output::Output;

/// Shows `report` to a person.
pub(crate) fn show(report: &RebuildReport, out: &mut Output) -> Result<(), Failure> {
    let (before, after) = (report.bytes_before, report.bytes_after);
    out.heading(format_args!("{} became {} ({})", size(before), size(after), share(after, before)))?;
    let changed =
        report.tables.iter().filter(|table| table.rows_dropped + table.rows_rewritten + table.rows_left > 0);
    let mut table = Table::new([
        Column::Whole("Table"),
        Column::Figure("Rows kept"),
        Column::Figure("Rows removed"),
        Column::Figure("Rows shortened"),
        Column::Figure("Left as they were"),
    ]);
    let mut is_empty = true;
    for found in changed {
        is_empty = false;
        table.row([
            super::text::printable(&found.table).into_owned(),
            count(found.rows_kept),
            count(found.rows_dropped),
            count(found.rows_rewritten),
            count(found.rows_left),
        ]);
    }
    if !is_empty {
        out.table(&mut table)?;
    }
    let way = match report.way {
        Way::Lease => "the files exchanged their names",
        Way::InPlace => "the content was copied back into the file",
    };
    let growth = size(report.log_growth);
    out.line(format_args!(
        "verified; {way}; locked for {} ms; the old log grew by {growth}",
        report.locked_ms
    ))
}
