//! `headwater undo`: puts back what a prune removed.

use std::fs;
use std::path::{Path, PathBuf};

use headwater_upkeep::fence::{FenceOptions, OpenCodeServers};
use headwater_upkeep::undo::{self, UndoOptions, UndoPreview, UndoReport};
use headwater_upkeep::{ReadDatabase, WriteDatabase};

use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::args::state::StateArgs;
use crate::clock;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::locks;
use crate::render::size::{count, counted};
use crate::render::table::{Column, Table};
use crate::render::text::printable;
use crate::status::Status;

/// Put back what a prune removed into an archive, byte for byte, where the rows are as the prune left them.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Doing it again restores nothing more. Exit status 4 where nothing was left to restore."
)]
pub(crate) struct Args {
    /// The archive that `prune --archive` wrote.
    #[arg(long, value_name = "FILE")]
    archive: PathBuf,
    /// Use an archive whose last frame is unfinished up to there: what that frame speaks of was never removed.
    #[arg(long)]
    accept_torn: bool,
    /// Restore into a session whose newest turn was interrupted and is not running.
    #[arg(long)]
    interrupted: bool,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let path = app.database()?;
    let preview = preview(args, &path, app)?;
    if app.out.is_json() {
        app.out.item("plan", &preview)?;
    } else {
        show_preview(args, &path, &preview, &mut app.out)?;
    }
    confirm(app, args.confirm.yes, "Restore it?")?;
    let database = WriteDatabase::open(&path, headwater_upkeep::LOCK_WAIT)?;
    let mut state = args.state.open()?;
    let probe = OpenCodeServers::new(database.file().path(), super::SERVER_TIMEOUT);
    let fence = FenceOptions { interrupted: args.interrupted, ..FenceOptions::default() };
    let options = UndoOptions { accept_torn: args.accept_torn, fence, ..UndoOptions::default() };
    let watch = Watch::new(app.cancel.clone());
    let restored = undo::run(&database, &mut state, &args.archive, &probe, options, clock::now(), &watch);
    watch.end();
    let report = restored?;
    let status = if report.rows_restored == 0 { Status::Nothing } else { Status::Done };
    match (app.out.is_json(), report.is_cancelled) {
        // The error that follows is the last line.
        (true, true) => app.out.item("report", &report)?,
        (true, false) => app.out.result(status, &report)?,
        (false, _) => show(&report, &mut app.out)?,
    }
    if report.is_cancelled {
        return Err(Failure::cancelled("the undo was stopped; what is restored stays restored"));
    }
    Ok(status)
}

/// What the archive holds. Opening the database for writing may leave a log beside it, which is too early before the answer.
fn preview(args: &Args, path: &Path, app: &App) -> Result<UndoPreview, Failure> {
    let database = ReadDatabase::open(path)?;
    ensure_file(&args.archive)?;
    let watch = Watch::new(app.cancel.clone());
    let preview = undo::preview(&database, &args.archive, args.accept_torn, &watch);
    watch.end();
    database.finish()?;
    Ok(preview?)
}

fn show_preview(args: &Args, path: &Path, preview: &UndoPreview, out: &mut Output) -> Result<(), Failure> {
    let [archive, path] = [args.archive.to_string_lossy(), path.to_string_lossy()];
    out.line(format_args!(
        "{} holds {} in {}, which go back into {} where what is stored is as the prune left it",
        printable(&archive),
        counted(preview.rows, ["row", "rows"]),
        counted(preview.units, ["unit", "units"]),
        printable(&path)
    ))?;
    let mut table = Table::new([Column::Whole("Class"), Column::Figure("Rows")]);
    for (class, rows) in &preview.classes {
        table.row([class.name().to_owned(), count(*rows)]);
    }
    out.table(&mut table)
}

fn ensure_file(archive: &Path) -> Result<(), Failure> {
    match fs::metadata(archive) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Failure::new(Status::Damaged, "not-an-archive", "the archive is not a file")
            .with_hint("name the file that `prune --archive` wrote")),
        Err(error) => {
            let path = archive.to_string_lossy();
            Err(Failure::new(Status::Other, "not-found", format_args!("archive {path}: {error}"))
                .with_hint("name the file that `prune --archive` wrote"))
        }
    }
}

fn show(report: &UndoReport, out: &mut Output) -> Result<(), Failure> {
    out.line(format_args!(
        "{} restored, in {} of {}",
        counted(report.rows_restored, ["row", "rows"]),
        count(report.units_restored),
        counted(report.units, ["unit", "units"])
    ))?;
    if report.had_torn_end {
        out.line("the last frame of the archive is unfinished and was left out")?;
    }
    if !report.rows_left.is_empty() {
        out.heading("Left alone")?;
        let mut table = Table::new([Column::Figure("Rows"), Column::Text("Why")]);
        for (reason, rows) in &report.rows_left {
            table.row([count(*rows), reason.to_string()]);
        }
        out.table(&mut table)?;
    }
    out.line(locks::line(&report.locks))
}
