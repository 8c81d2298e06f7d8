//! `headwater rebuild`: a large file becomes a small one, offline.

use headwater_upkeep::ReadDatabase;
use headwater_upkeep::plan::{self, Plan, Selection};
use headwater_upkeep::rebuild::{self, Forecast, RebuildError, RebuildErrorKind, RebuildOptions};
use serde::Serialize;

use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::args::selection::{ClassArgs, ReachArgs, SessionArgs, selection};
use crate::clock;
use crate::confirm::confirm;
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
    let selection = selection(&args.classes.classes, &args.sessions, args.reach, clock::now())?;
    let path = app.database()?;
    let (plan, forecast) = look(&selection, app)?;
    if app.out.is_json() {
        app.out.item("plan", &Planned { plan: PlanView::from(&plan), forecast })?;
    } else {
        show(&plan, &forecast, args.in_place, &mut app.out)?;
    }
    let at = |kind: RebuildErrorKind| Failure::from(RebuildError { path: path.clone(), kind });
    forecast.ensure_worthwhile(args.force).map_err(at)?;
    forecast.ensure_room(args.in_place).map_err(at)?;
    confirm(app, args.confirm.yes, "Rebuild the database?")?;
    let options = RebuildOptions { force: args.force, in_place: args.in_place, confirmed: Some(plan) };
    let watch = Watch::new(app.cancel.clone());
    let rebuilt = rebuild::run(&path, &selection, &options, &watch);
    watch.end();
    let report = rebuilt?;
    if app.out.is_json() {
        app.out.result(Status::Done, &report)?;
    } else {
        rebuilt::show(&report, &mut app.out)?;
    }
    Ok(Status::Done)
}

/// The plan and what it needs. The database is closed again, because the rebuild must be alone with it.
fn look(selection: &Selection, app: &App) -> Result<(Plan, Forecast), Failure> {
    let path = app.database()?;
    let database = ReadDatabase::open(&path)?;
    let watch = Watch::new(app.cancel.clone());
    let planned = plan::compute(database.connection(), database.schema(), selection, &watch);
    watch.end();
    let plan = planned?;
    let forecast = Forecast::of(database.connection(), database.file(), &plan)
        .map_err(|kind| Failure::from(RebuildError { path, kind }))?;
    database.finish()?;
    Ok((plan, forecast))
}

fn show(plan: &Plan, forecast: &Forecast, in_place: bool, out: &mut Output) -> Result<(), Failure> {
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
