//! `headwater rebuild`: a large file becomes a small one, offline.

use std::cell::{Cell, RefCell};
use std::path::Path;

use headwater_upkeep::ReadDatabase;
use headwater_upkeep::plan::{self, Figures, Plan, Selection};
use headwater_upkeep::rebuild::{
    self, Forecast, RebuildError, RebuildErrorKind, RebuildOptions, RebuildReport,
};
use serde::Serialize;

use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::args::selection::{ClassArgs, ReachArgs, SessionArgs, selection};
use crate::clock;
use crate::confirm::{confirm, ensure_read};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::plan::{self as plan_view, PlanView};
use crate::render::rebuilt;
use crate::render::size::size;
use crate::status::Status;

/// Write a new, small database with what survives, and let it take the old one's place. Nobody may have it open.
///
/// Shows the plan and changes nothing before it is confirmed. Without a class it gives back free pages only.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  headwater rebuild --class superseded-events --class diffs
  headwater rebuild --class events --class technical --older-than 90d --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    classes: ClassArgs,
    #[command(flatten)]
    sessions: SessionArgs,
    #[command(flatten)]
    reach: ReachArgs,
    /// Rewrite also where next to nothing would be gained.
    #[arg(long)]
    force: bool,
    /// Where the two files cannot exchange their names, copy the new content back into the old file.
    #[arg(long)]
    in_place: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// What a program learns before the confirmation.
#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    plan: PlanView<'a>,
    forecast: Forecast,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let mut selection = selection(&args.classes.classes, &args.sessions, args.reach, clock::now())?;
    if selection.figures == Figures::Near {
        // What it frees is measured afterwards; rows that are read for a figure are read again for the new file.
        selection.figures = Figures::Rough;
    }
    let path = app.database()?;
    let mut options = RebuildOptions { force: args.force, in_place: args.in_place, confirmed: None };
    if args.confirm.yes {
        // What is no database of OpenCode's is refused before a lock is asked for.
        ReadDatabase::open(&path)?.finish()?;
    } else {
        options.confirmed = Some(ask(args, &selection, &path, app)?);
    }
    let report = rebuild(&path, &selection, &options, app)?;
    if app.out.is_json() {
        app.out.result(Status::Done, &report)?;
    } else {
        rebuilt::show(&report, &mut app.out)?;
    }
    Ok(Status::Done)
}

/// Shows the plan and asks. A rebuild that `--yes` has confirmed skips this: its plan is made and shown once, under the lock.
fn ask(args: &Args, selection: &Selection, path: &Path, app: &mut App) -> Result<Plan, Failure> {
    let (plan, forecast) = look(selection, app)?;
    show(&plan, &forecast, args.in_place, &mut app.out)?;
    let at = |kind: RebuildErrorKind| Failure::from(RebuildError { path: path.to_owned(), kind });
    forecast.ensure_worthwhile(args.force).map_err(at)?;
    forecast.ensure_room(args.in_place).map_err(at)?;
    confirm(app, false, "Rebuild the database?")?;
    Ok(plan)
}

fn rebuild(
    path: &Path,
    selection: &Selection,
    options: &RebuildOptions,
    app: &mut App,
) -> Result<RebuildReport, Failure> {
    let watch = Watch::new(app.cancel.clone());
    let out = RefCell::new(&mut app.out);
    let unshown = Cell::new(None);
    let on_plan = |plan: &Plan, forecast: &Forecast| {
        if options.confirmed.is_some() {
            return true;
        }
        let mut out = out.borrow_mut();
        let shown = watch
            .aside(|| show(plan, forecast, options.in_place, &mut out).and_then(|()| ensure_read(&mut out)));
        shown.map_err(|failure| unshown.set(Some(failure))).is_ok()
    };
    let rebuilt = rebuild::run_showing(path, selection, options, &on_plan, &watch);
    watch.end();
    match unshown.take() {
        Some(failure) => Err(failure),
        None => Ok(rebuilt?),
    }
}

/// The plan and what it needs. The database is closed again, because the rebuild must be alone with it.
fn look(selection: &Selection, app: &App) -> Result<(Plan, Forecast), Failure> {
    let path = app.database()?;
    let database = ReadDatabase::open(&path)?;
    let watch = Watch::new(app.cancel.clone());
    let planned = plan::compute(database.connection(), database.schema(), selection, &watch);
    watch.end();
    database.ensure_unchanged()?;
    let plan = planned?;
    let forecast = Forecast::of(database.connection(), database.file(), &plan)
        .map_err(|kind| Failure::from(RebuildError { path, kind }))?;
    database.finish()?;
    Ok((plan, forecast))
}

fn show(plan: &Plan, forecast: &Forecast, in_place: bool, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        return out.item("plan", &Planned { plan: PlanView::from(plan), forecast: *forecast });
    }
    if !plan.totals.is_empty() {
        plan_view::show(plan, out)?;
        out.line("")?;
    }
    let (room, log) = if in_place {
        (forecast.room_in_place, format!(", and the log grows by {}", size(forecast.log_in_place)))
    } else {
        (forecast.room_by_lease, String::new())
    };
    out.line(format_args!(
        "file and log hold {}, {} of it free pages",
        size(forecast.bytes_before),
        size(forecast.free_page_bytes)
    ))?;
    out.line(format_args!("the new file has at most {}", size(forecast.bytes_after)))?;
    out.line(format_args!(
        "it takes {} of free disk{log}; {} are there",
        size(room),
        size(forecast.free_disk)
    ))
}
