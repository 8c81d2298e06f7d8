//! `headwater conversation backup`: a verified snapshot of a file.

use std::path::PathBuf;

use headwater_upkeep::Content;
use headwater_upkeep::backup::{self, BackupOptions};

use super::place::Place;
use super::store;
use crate::app::App;
use crate::failure::{Failure, conversation as failure};
use crate::progress::Watch;
use crate::render::size::{count, size};
use crate::render::text::printable;
use crate::status::Status;

/// Write a snapshot of the store into one file, also while it is in use, and verify the very bytes. Never over a file that is there.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: headwater conversation backup monday.db")]
pub(crate) struct Args {
    /// The snapshot.
    #[arg(value_name = "FILE")]
    destination: PathBuf,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let Some(path) = place.file() else { return Err(of_server(&place, "pg_dump")) };
    failure::ensure_store(store::look(&place)?.standing, &place.shown())?;
    let watch = Watch::new(app.cancel.clone());
    let options = BackupOptions { overwrite: false, content: Content::Any };
    let done = backup::run(path, &args.destination, options, &watch);
    watch.end();
    let report = done.map_err(failure::of_copy)?;
    if app.out.is_json() {
        app.out.result(Status::Done, &report)?;
    } else {
        app.out.line(format_args!(
            "{}: {}, {} rows of {} tables compared with the store",
            printable(&report.destination.to_string_lossy()),
            size(report.bytes),
            count(report.rows),
            count(report.tables)
        ))?;
    }
    Ok(Status::Done)
}

/// A database of PostgreSQL has its own program for this.
pub(super) fn of_server(place: &Place, program: &str) -> Failure {
    let message =
        format_args!("{}: backups of PostgreSQL are made and restored by its own programs", place.shown());
    Failure::new(Status::Usage, "use-postgres-tools", message).with_hint(format!(
        "run {program}, or `headwater conversation export` and `import`; nothing was changed"
    ))
}
