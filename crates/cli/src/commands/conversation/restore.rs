//! `headwater conversation restore`: a snapshot takes the place of the store.

use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use headwater_store::Standing;
use headwater_upkeep::Content;
use headwater_upkeep::restore::RestoreOptions;
use serde::Serialize;

use super::backup::of_server;
use super::place::Place;
use super::store;
use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::commands::restore::{bytes_of, put};
use crate::confirm::confirm;
use crate::failure::{Failure, conversation as failure};
use crate::render::size::{count, size};
use crate::render::text::printable;
use crate::status::Status;

/// Put a snapshot in the place of the store. Nobody may have the store open; it may be damaged or gone.
///
/// Clients see a new epoch and read everything again: what they knew of the store says nothing of the snapshot.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "The previous store is kept as NAME.before-restore-N.")]
pub(crate) struct Args {
    /// The snapshot, as `backup` made it. It is only read.
    #[arg(value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// What a program learns before the confirmation.
#[derive(Serialize)]
struct Planned<'a> {
    path: &'a Path,
    from: &'a Path,
    /// Absent where no store is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<ByteCount>,
    bytes_after: ByteCount,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let Some(path) = place.file() else { return Err(of_server(&place, "pg_restore")) };
    let snapshot = store::look_at(&args.from).map_err(of_snapshot)?;
    failure::ensure_store(snapshot.standing, &printable(&args.from.to_string_lossy()))?;
    // What cannot be opened is what a restore is for; what can be and is something else must not be lost.
    if let Ok(found) = store::look(&place)
        && found.standing != Standing::Empty
    {
        failure::ensure_store(found.standing, &place.shown())?;
    }
    let planned = Planned {
        path,
        from: &args.from,
        bytes_before: bytes_of(path),
        bytes_after: bytes_of(&args.from).unwrap_or_default(),
    };
    if app.out.is_json() {
        app.out.item("plan", &planned)?;
    } else {
        let from = args.from.to_string_lossy();
        app.out.line(format_args!(
            "{} ({}) takes the place of",
            printable(&from),
            size(planned.bytes_after)
        ))?;
        let before = planned.bytes_before.map_or_else(
            || "nothing is there".to_owned(),
            |bytes| format!("{}, which is kept under another name", size(bytes)),
        );
        app.out.line(format_args!("{} ({before})", place.shown()))?;
    }
    confirm(app, args.confirm.yes, "Restore the snapshot?")?;
    let options = RestoreOptions { forget_previous: false, content: Content::Any };
    let report = put(app, [path, &args.from], options, failure::of_copy, of_snapshot)?;
    if app.out.is_json() {
        app.out.result(Status::Done, &report)?;
        return Ok(Status::Done);
    }
    let path = report.path.to_string_lossy();
    let rows = count(report.rows);
    app.out.line(format_args!("{}: {}, {rows} rows, verified", printable(&path), size(report.bytes)))?;
    if let Some(previous) = &report.previous {
        app.out.line(format_args!("the previous store is {}", printable(&previous.to_string_lossy())))?;
    }
    Ok(Status::Done)
}

/// What to do where the snapshot is at fault.
fn of_snapshot(failure: Failure) -> Failure {
    match failure.code {
        "not-found" => failure.with_hint("name the file that `backup` wrote; nothing was changed"),
        "damaged" | "not-a-database" | "empty-file" => {
            failure.with_hint("use another snapshot; nothing was changed")
        }
        _ => failure,
    }
}
