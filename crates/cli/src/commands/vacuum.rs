//! `headwater vacuum`: SQLite's own way of giving free pages back.

use headwater_upkeep::ReadDatabase;
use headwater_upkeep::plan::Plan;
use headwater_upkeep::rebuild::{Forecast, RebuildError, RebuildErrorKind};
use headwater_upkeep::vacuum::{self, AutoVacuum, NothingFreed, VacuumOptions, VacuumReport};

use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::size::size;
use crate::status::Status;

/// Give free pages back to the disk by SQLite's own VACUUM. Nobody may have the database open.
///
/// `rebuild` does the same faster, without a log of the size of the file, and can leave content out on the way.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Args {
    /// Rewrite also where no page is free.
    #[arg(long)]
    force: bool,
    /// Only cut free pages off, which needs a file that was made for it.
    #[arg(long)]
    incremental: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

pub(crate) fn run(args: Args, app: &mut App) -> Result<Status, Failure> {
    let path = app.database()?;
    let database = ReadDatabase::open(&path)?;
    let forecast = Forecast::of(database.connection(), database.file(), &Plan::default())
        .map_err(|kind| RebuildError { path: path.clone(), kind })?;
    database.finish()?;
    if app.out.is_json() {
        app.out.item("plan", &forecast)?;
    } else {
        let (bytes, free) = (size(forecast.bytes_before), size(forecast.free_page_bytes));
        app.out.line(format_args!("file and log hold {bytes}, {free} of it free pages"))?;
    }
    // Nobody is asked about what would be refused after the answer.
    if forecast.free_page_bytes.is_zero() && !args.force && !args.incremental {
        let file_bytes = forecast.bytes_before.get();
        let kind = RebuildErrorKind::NothingToGain { free_bytes: 0, planned_bytes: 0, file_bytes };
        return Err(RebuildError { path, kind }.into());
    }
    confirm(app, args.confirm.yes, "Vacuum the database?")?;
    let options = VacuumOptions { force: args.force, incremental: args.incremental };
    let watch = Watch::new(app.cancel.clone());
    let vacuumed = vacuum::run(&path, options, &watch);
    watch.end();
    let report = vacuumed?;
    let status = if report.nothing_freed.is_some() { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, &report)?;
    } else {
        show(&report, &mut app.out)?;
    }
    Ok(status)
}

fn show(report: &VacuumReport, out: &mut Output) -> Result<(), Failure> {
    let [before, after, freed] = [report.bytes_before, report.bytes_after, report.bytes_freed].map(size);
    out.line(format_args!("{before} became {after}: {freed} freed, measured from the file"))?;
    match report.nothing_freed {
        None => {}
        Some(NothingFreed::NoFreePage) => {
            out.line("no page of the file was free: only a prune or a rebuild by class helps")?;
        }
        Some(NothingFreed::AutoVacuumOff) => {
            out.line("the file keeps no track of its pages (auto_vacuum=0): run it without --incremental")?;
        }
    }
    let mode = match report.auto_vacuum {
        AutoVacuum::None => "none",
        AutoVacuum::Full => "full",
        AutoVacuum::Incremental => "incremental",
    };
    let growth = size(report.log_growth);
    out.line(format_args!(
        "auto_vacuum {mode}; locked for {} ms; the log grew by {growth} on the way",
        report.locked_ms
    ))
}
