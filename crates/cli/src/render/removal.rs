//! What a prune did, as a table.

use std::collections::BTreeMap;

use headwater_prune::KeptReason;
use headwater_upkeep::prune::PruneReport;

use super::locks;
use super::size::{count, size};
use super::table::{Column, Table};
use crate::failure::Failure;
use crate::output::Output;

/// Shows `report` to a person.
pub(crate) fn show(report: &PruneReport, out: &mut Output) -> Result<(), Failure> {
    if report.is_empty() {
        out.line("\nnothing was removed")?;
    } else {
        show_classes(report, out)?;
        let space = &report.space;
        out.line(format_args!(
            "{} became free inside the file of {}; `headwater rebuild` gives it back to the disk",
            size(space.freed()),
            size(space.file_bytes_after)
        ))?;
        out.line(locks::line(&report.locks))?;
    }
    show_kept(report, out)
}

fn show_classes(report: &PruneReport, out: &mut Output) -> Result<(), Failure> {
    out.heading("Removed")?;
    let mut table = Table::new([
        Column::Whole("Class"),
        Column::Figure("Size"),
        Column::Figure("Rows removed"),
        Column::Figure("Rows shortened"),
        Column::Figure("Changed meanwhile"),
    ]);
    for (class, done) in &report.classes {
        let left = report.rows_left.get(class).copied().unwrap_or_default();
        table.row([
            class.name().to_owned(),
            size(done.bytes),
            count(done.rows_dropped),
            count(done.rows_rewritten),
            count(left.changed + left.gone),
        ]);
    }
    out.table(&mut table)
}

fn show_kept(report: &PruneReport, out: &mut Output) -> Result<(), Failure> {
    if report.kept_count == 0 {
        return Ok(());
    }
    let mut reasons: BTreeMap<KeptReason, u64> = BTreeMap::new();
    for kept in &report.kept {
        *reasons.entry(kept.reason).or_default() += 1;
    }
    out.heading(format_args!("Kept: {}", count(report.kept_count)))?;
    let mut table = Table::new([Column::Figure("How many"), Column::Text("Why")]);
    for (reason, number) in reasons {
        table.row([count(number), reason.to_string()]);
    }
    out.table(&mut table)
}
