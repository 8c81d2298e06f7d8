//! `headwater salvage`: saves what a damaged file still gives.

use std::path::PathBuf;

use headwater_upkeep::salvage::{self, SalvageOptions, SalvageReport};

use crate::app::App;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::size::{count, counted, size};
use crate::render::table::{Column, Table};
use crate::render::text::printable;
use crate::status::Status;

/// Save what can be read of a damaged database into a new file. The damaged file is only read.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: headwater salvage --db damaged.db saved.db")]
pub(crate) struct Args {
    /// The new file, which must not exist.
    #[arg(value_name = "FILE")]
    target: PathBuf,
    /// Keep rows whose payload is not JSON any more. One of them makes its whole session unreadable for OpenCode.
    #[arg(long)]
    keep_invalid: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    app.ensure_apart(&args.target)?;
    let source = app.database()?;
    let watch = Watch::new(app.cancel.clone());
    let options = SalvageOptions { keep_invalid: args.keep_invalid };
    let saved = salvage::run(&source, &args.target, options, &watch);
    watch.end();
    let report = saved?;
    let status = if report.rows_recovered == 0 { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, &report)?;
    } else {
        show(&report, &mut app.out)?;
    }
    Ok(status)
}

fn show(report: &SalvageReport, out: &mut Output) -> Result<(), Failure> {
    let target = report.target.to_string_lossy();
    out.line(format_args!(
        "{}: {}, {} recovered, {} known to be lost, {} left out because they are not JSON any more",
        printable(&target),
        size(report.target_bytes),
        counted(report.rows_recovered, ["row", "rows"]),
        count(report.rows_lost),
        count(report.rows_invalid)
    ))?;
    if report.header_rebuilt {
        out.line("the header of the file had to be rebuilt")?;
    }
    let damaged = report.tables.iter().filter(|table| {
        table.rows_lost + table.rows_invalid + table.rows_from_stray_pages > 0 || !table.lost_is_exact
    });
    let mut table = Table::new([
        Column::Whole("Table"),
        Column::Figure("Recovered"),
        Column::Figure("From stray pages"),
        Column::Figure("Lost"),
        Column::Figure("Left out"),
    ]);
    let mut is_sound = true;
    for found in damaged {
        is_sound = false;
        table.row([
            printable(&found.name).into_owned(),
            count(found.rows_recovered),
            count(found.rows_from_stray_pages),
            lost(found.rows_lost, found.lost_is_exact),
            count(found.rows_invalid),
        ]);
    }
    if !is_sound {
        out.line("")?;
        out.table(&mut table)?;
    }
    for lost in &report.lost_objects {
        let [kind, name, reason] = [&lost.kind, &lost.name, &lost.reason].map(|text| printable(text));
        out.line(format_args!("not made again: {kind} {name}: {reason}"))?;
    }
    if report.broken_references > 0 {
        let broken = counted(report.broken_references, ["row names", "rows name"]);
        out.line(format_args!("{broken} rows that were lost; `headwater check` lists them"))?;
    }
    Ok(())
}

/// How many rows of a table are lost, as far as that is known.
fn lost(rows: u64, is_exact: bool) -> String {
    match (rows, is_exact) {
        (_, true) => count(rows),
        (0, false) => "unknown".to_owned(),
        (_, false) => format!("≥ {}", count(rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_of_which_nothing_is_known_is_no_number() {
        assert_eq!(lost(0, true), "0");
        assert_eq!(lost(1200, true), "1,200");
        assert_eq!(lost(3, false), "≥ 3");
        assert_eq!(lost(0, false), "unknown");
    }
}
