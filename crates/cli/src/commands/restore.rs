//! `headwater restore`: a snapshot takes the database's place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use headwater_upkeep::ReadDatabase;
use headwater_upkeep::rebuild::RebuildError;
use headwater_upkeep::restore::{self, RestoreOptions, RestoreReport};
use serde::Serialize;

use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::size::{counted, size};
use crate::render::text::printable;
use crate::status::Status;

/// Put a snapshot in the place of the database. Nobody may have the database open; it may be damaged or gone.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "The previous database is kept as NAME.before-restore-N.")]
pub(crate) struct Args {
    /// The snapshot, as `backup` made it. It is only read.
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Remove the previous database instead of keeping it under another name.
    #[arg(long)]
    forget_previous: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// What a program learns before the confirmation.
#[derive(Serialize)]
struct Planned<'a> {
    path: &'a Path,
    from: &'a Path,
    /// Absent where no database is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<ByteCount>,
    bytes_after: ByteCount,
    keeps_previous: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let path = app.database()?;
    ensure_folder(&path)?;
    let opened = ReadDatabase::open(&args.from).and_then(ReadDatabase::finish);
    opened.map_err(|error| of_snapshot(error.into()))?;
    let planned = Planned {
        path: &path,
        from: &args.from,
        bytes_before: bytes_of(&path),
        bytes_after: bytes_of(&args.from).unwrap_or_default(),
        keeps_previous: !args.forget_previous,
    };
    if app.out.is_json() {
        app.out.item("plan", &planned)?;
    } else {
        show_plan(&planned, &mut app.out)?;
    }
    confirm(app, args.confirm.yes, "Restore the snapshot?")?;
    let options = RestoreOptions { forget_previous: args.forget_previous, ..RestoreOptions::default() };
    let report = put(app, [&path, &args.from], options, Failure::from, of_snapshot)?;
    if app.out.is_json() {
        app.out.result(Status::Done, &report)?;
    } else {
        show(&report, &mut app.out)?;
    }
    Ok(Status::Done)
}

/// Bytes of the file at `path`, where there is one.
pub(crate) fn bytes_of(path: &Path) -> Option<ByteCount> {
    fs::metadata(path).ok().map(|found| ByteCount::new(found.len()))
}

/// Puts the snapshot at `from` in the place of what is at `path`. `told` says what an error means, and `of_snapshot` what to do where the
/// snapshot is at fault.
pub(crate) fn put(
    app: &App,
    [path, from]: [&Path; 2],
    options: RestoreOptions,
    told: fn(RebuildError) -> Failure,
    of_snapshot: fn(Failure) -> Failure,
) -> Result<RestoreReport, Failure> {
    let watch = Watch::new(app.cancel.clone());
    let restored = restore::run(path, from, options, &watch);
    watch.end();
    restored.map_err(|error| {
        let is_of_snapshot = error.path == from;
        let failure = told(error);
        if is_of_snapshot { of_snapshot(failure) } else { failure }
    })
}

/// The database may be gone, but not the folder that it is put into.
fn ensure_folder(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format_args!("the folder {} is missing", folder.display());
            Err(Failure::new(Status::Other, "not-found", message)
                .with_hint("make the folder, or name another file with --db; nothing was changed"))
        }
        // Whatever else is wrong with it is said where it is used.
        _ => Ok(()),
    }
}

/// What to do where the snapshot is at fault: the hints of a database speak of `--db`, and would have the database checked.
fn of_snapshot(failure: Failure) -> Failure {
    match failure.code {
        "not-found" => failure.with_hint("name the file that `backup` wrote; nothing was changed"),
        "damaged" | "not-a-database" | "empty-file" => failure.with_hint(
            "use another snapshot, or save what this one gives: `headwater salvage --db SNAPSHOT FILE`; nothing was changed",
        ),
        _ => failure,
    }
}

fn show_plan(planned: &Planned<'_>, out: &mut Output) -> Result<(), Failure> {
    let [path, from] = [planned.path, planned.from].map(Path::to_string_lossy);
    out.line(format_args!("{} ({}) takes the place of", printable(&from), size(planned.bytes_after)))?;
    let before = planned.bytes_before.map_or_else(|| "nothing is there".to_owned(), size);
    let previous = match (planned.bytes_before, planned.keeps_previous) {
        (None, _) => "",
        (Some(_), true) => ", which is kept under another name",
        (Some(_), false) => ", which is removed",
    };
    out.line(format_args!("{} ({before}){previous}", printable(&path)))
}

fn show(report: &RestoreReport, out: &mut Output) -> Result<(), Failure> {
    let path = report.path.to_string_lossy();
    out.line(format_args!(
        "{}: {}, {}, verified",
        printable(&path),
        size(report.bytes),
        counted(report.rows, ["row", "rows"])
    ))?;
    if let Some(previous) = &report.previous {
        let previous = previous.to_string_lossy();
        out.line(format_args!("the previous database is {}", printable(&previous)))?;
    }
    Ok(())
}
