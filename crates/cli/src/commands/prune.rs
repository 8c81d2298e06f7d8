//! `headwater prune`: removes what was shown, row by row, also while OpenCode runs.

use std::fs;
use std::path::{Path, PathBuf};

use headwater_model::{ContentRevision, MessageId, SessionId};
use headwater_prune::{Indexes, PruneRequest};
use headwater_upkeep::fence::{FenceOptions, OpenCodeServers};
use headwater_upkeep::plan::{self, Plan, Selection};
use headwater_upkeep::prune::{Answer, MessagePreview, PruneOptions, PruneReport, Pruner, Stopped};
use headwater_upkeep::state::DatabaseIdentity;
use headwater_upkeep::undo::Archive;
use headwater_upkeep::{ReadDatabase, WriteDatabase};
use serde::Serialize;

use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::args::state::StateArgs;
use crate::args::target::{Target, TargetArgs, session_of};
use crate::clock;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::render::plan::{self as plan_view, PlanView};
use crate::render::removal;
use crate::render::size::{counted, size};
use crate::render::text::printable;
use crate::status::Status;

use super::preview;

/// Remove what a preview shows, row by row, also while OpenCode 1.x runs.
///
/// Shows the plan and changes nothing before it is confirmed. Space becomes free inside the file; `rebuild` and `vacuum` give it
/// back to the disk.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  headwater prune --class superseded-events
  headwater prune --class technical --older-than 30d --archive removed.zst
  headwater prune --message msg_1234 --revision 0123... --index 1 --index 2")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// An item of the message, by the index that `preview` shows; repeat it for several.
    #[arg(long = "index", value_name = "N", requires = "message")]
    indexes: Vec<u32>,
    /// The revision that `preview` showed. What is stored must still have it. Required with --yes.
    #[arg(long, value_name = "HEX", requires = "message")]
    revision: Option<ContentRevision>,
    /// Write what is removed into this file first (zstd), so that `undo` can put it back. An archive of this database that is there
    /// already keeps what it holds and grows.
    #[arg(long, value_name = "FILE")]
    archive: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    if let Some(archive) = &args.archive {
        app.ensure_apart(archive)?;
    }
    match args.target.target()? {
        Target::Classes(selection) => classes(args, &selection, app),
        Target::Message { message, session } => of_message(args, &message, session, app),
    }
}

fn classes(args: &Args, selection: &Selection, app: &mut App) -> Result<Status, Failure> {
    let plan = planned(selection, app)?;
    if app.out.is_json() {
        app.out.item("plan", &Shown { what: &PlanView::from(&plan), archive: ArchiveView::of(args) })?;
    } else {
        plan_view::show(&plan, &mut app.out)?;
        if !plan_view::is_empty(&plan) {
            show_archive(args, app)?;
        }
    }
    let report = if plan_view::is_empty(&plan) {
        PruneReport::default()
    } else {
        confirm(app, args.confirm.yes, "Remove this?")?;
        let (report, failure) = with_pruner(args, app, |pruner| {
            let (report, ended) = pruner.apply(&plan, selection);
            Ok((report, ended.err().map(Failure::from)))
        })?;
        if let Some(failure) = failure.or_else(|| stopped(&report)) {
            show(&report, app, None)?;
            return Err(failure);
        }
        report
    };
    let status = status_of(&report);
    show(&report, app, Some(status))?;
    Ok(status)
}

/// The plan, made without a trace.
fn planned(selection: &Selection, app: &App) -> Result<Plan, Failure> {
    let database = ReadDatabase::open(&app.database()?)?;
    let watch = Watch::new(app.cancel.clone());
    let planned = plan::compute(database.connection(), database.schema(), selection, &watch);
    watch.end();
    database.finish()?;
    Ok(planned?)
}

fn stopped(report: &PruneReport) -> Option<Failure> {
    match report.stopped? {
        Stopped::Cancelled => {
            Some(Failure::cancelled("the prune was stopped; what is removed stays removed"))
        }
        Stopped::Blocked(why) => Some(headwater_upkeep::prune::Blocked::from(why).into()),
        // The error beside the report says more.
        Stopped::Failed => None,
    }
}

fn status_of(report: &PruneReport) -> Status {
    match (report.is_empty(), report.kept_count > 0 || !report.rows_left.is_empty()) {
        (false, _) => Status::Done,
        (true, true) => Status::Blocked,
        (true, false) => Status::Nothing,
    }
}

/// Shows the report: as the result where there is a status, else before the error that follows.
fn show(report: &PruneReport, app: &mut App, status: Option<Status>) -> Result<(), Failure> {
    match (app.out.is_json(), status) {
        (true, Some(status)) => app.out.result(status, report),
        (true, None) => app.out.item("report", report),
        (false, _) => removal::show(report, &mut app.out),
    }
}

fn of_message(
    args: &Args,
    message: &MessageId,
    session: Option<SessionId>,
    app: &mut App,
) -> Result<Status, Failure> {
    let database = ReadDatabase::open(&app.database()?)?;
    let session = session_of(&database, message, session)?;
    let request = |preview: &MessagePreview| -> Result<PruneRequest, Failure> {
        let indexes = Indexes::new(args.indexes.iter().copied())
            .map_err(|error| Failure::usage(format_args!("--index: {error}")))?;
        let revision = args.revision.unwrap_or(preview.revision);
        Ok(PruneRequest { session: session.clone(), message: message.clone(), indexes, revision })
    };
    if args.confirm.yes && args.revision.is_none() {
        return Err(Failure::usage("--yes needs the --revision that `headwater preview --message` shows"));
    }
    let preview = preview::of_message(&database, &session, message)?;
    let request = request(&preview)?;
    database.finish()?;
    if app.out.is_json() {
        app.out.item("preview", &Shown { what: &preview, archive: ArchiveView::of(args) })?;
    } else {
        preview::show(&preview, &mut app.out)?;
        let indexes: Vec<_> = request.indexes.as_slice().iter().map(u32::to_string).collect();
        app.out.line(format_args!("\nto be removed: {}", indexes.join(", ")))?;
        show_archive(args, app)?;
        if request.revision != preview.revision {
            app.out.line("the message has another revision: only a repeated request is answered, anything else is refused")?;
        }
    }
    confirm(app, args.confirm.yes, "Remove these items?")?;
    let answer = with_pruner(args, app, |pruner| Ok(pruner.message(&request, Some(&preview.place))?))?;
    match answer {
        Answer::Blocked(blocked) => Err(blocked.into()),
        Answer::Pruned(receipt) if app.out.is_json() => {
            app.out.result(Status::Done, &receipt)?;
            Ok(Status::Done)
        }
        Answer::Pruned(receipt) => {
            let removed = receipt.removed;
            app.out.line(format_args!(
                "removed {} and {}, {}; the receipt is {}",
                counted(removed.tools.into(), ["tool call", "tool calls"]),
                counted(removed.reasoning.into(), ["reasoning item", "reasoning items"]),
                size(receipt.bytes),
                receipt.key
            ))?;
            Ok(Status::Done)
        }
    }
}

/// What a program learns before the confirmation.
#[derive(Serialize)]
struct Shown<'a, T> {
    #[serde(flatten)]
    what: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<ArchiveView<'a>>,
}

/// Where what is removed goes.
#[derive(Serialize)]
struct ArchiveView<'a> {
    path: &'a Path,
    /// Whether it is there already, keeps what it holds and grows.
    is_continued: bool,
}

impl<'a> ArchiveView<'a> {
    fn of(args: &'a Args) -> Option<Self> {
        let path = args.archive.as_deref()?;
        Some(Self { path, is_continued: fs::metadata(path).is_ok_and(|found| found.len() > 0) })
    }
}

/// Says where what is removed goes, and that an archive is continued.
fn show_archive(args: &Args, app: &mut App) -> Result<(), Failure> {
    let Some(ArchiveView { path, is_continued }) = ArchiveView::of(args) else { return Ok(()) };
    let path = path.to_string_lossy();
    let added = if is_continued { "added to the archive" } else { "written into the new archive" };
    app.out.line(format_args!("what is removed is first {added} {}", printable(&path)))
}

/// Opens what a prune works with, and gives it to `body`.
fn with_pruner<T>(
    args: &Args,
    app: &App,
    body: impl FnOnce(&mut Pruner<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let database = WriteDatabase::open(&app.database()?, headwater_upkeep::LOCK_WAIT)?;
    let mut state = args.state.open()?;
    let identity = DatabaseIdentity::read(database.connection(), database.file())
        .map_err(headwater_upkeep::prune::PruneError::from)?;
    let mut archive = args.archive.as_deref().map(|path| Archive::open(path, &identity)).transpose()?;
    let probe = OpenCodeServers::new(database.file().path(), super::SERVER_TIMEOUT);
    let fence = FenceOptions { interrupted: args.target.reach.interrupted, ..FenceOptions::default() };
    let options = PruneOptions { fence, ..PruneOptions::batch() };
    let watch = Watch::new(app.cancel.clone());
    let mut pruner = Pruner::new(&database, &mut state, &probe, options, clock::now(), &watch)?;
    if let Some(archive) = &mut archive {
        pruner = pruner.with_archive(archive);
    }
    let done = body(&mut pruner);
    watch.end();
    done
}
