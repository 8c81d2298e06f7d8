//! `headwater backup`: a verified snapshot.

use std::path::PathBuf;

use headwater_upkeep::backup::{self, BackupOptions};
use headwater_upkeep::rebuild::RebuildErrorKind;

use crate::app::App;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::render::size::{counted, size};
use crate::render::text::printable;
use crate::status::Status;

/// Write a snapshot of the database into one file, also while it is in use, and verify the very bytes.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: headwater backup /backups/opencode-monday.db")]
pub(crate) struct Args {
    /// The snapshot.
    #[arg(value_name = "FILE")]
    destination: PathBuf,
    /// Replace a file that is there already.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    app.ensure_apart(&args.destination)?;
    let path = app.database()?;
    let watch = Watch::new(app.cancel.clone());
    let options = BackupOptions { overwrite: args.force, ..BackupOptions::default() };
    let done = backup::run(&path, &args.destination, options, &watch);
    watch.end();
    let report = done.map_err(|error| {
        let is_replaceable = !args.force
            && args.destination.is_file()
            && matches!(&error.kind, RebuildErrorKind::Exists(found) if *found == args.destination);
        let failure = Failure::from(error);
        if is_replaceable {
            failure.with_hint("add --force to replace it, or name another file; nothing was changed")
        } else {
            failure
        }
    })?;
    if app.out.is_json() {
        app.out.result(Status::Done, &report)?;
        return Ok(Status::Done);
    }
    let destination = report.destination.to_string_lossy();
    app.out.line(format_args!(
        "{}: {}, {} of {} compared with the database",
        printable(&destination),
        size(report.bytes),
        counted(report.rows, ["row", "rows"]),
        counted(report.tables, ["table", "tables"])
    ))?;
    Ok(Status::Done)
}
