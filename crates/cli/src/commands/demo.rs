//! `headwater demo`: a sample database.

use std::path::PathBuf;

use headwater_upkeep::demo;

use crate::app::App;
use crate::clock;
use crate::failure::Failure;
use crate::render::size::size;
use crate::render::text::printable;
use crate::status::Status;

/// Make a sample database of a few MiB to try every command on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder that gets opencode.db; made where it does not exist, refused where it has a database.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let made = demo::create(&args.dir, clock::now())?;
    if app.out.is_json() {
        app.out.result(Status::Done, &made)?;
        return Ok(Status::Done);
    }
    let path = made.database.display().to_string();
    let path = printable(&path);
    app.out.line(format_args!("{path}: {} sessions, {}", made.sessions, size(made.bytes)))?;
    app.out.line("Every conversation in it is invented, so nothing can go wrong. Try:")?;
    for example in EXAMPLES {
        app.out.line(format_args!("  headwater --db {path} {example}"))?;
    }
    Ok(Status::Done)
}

/// What to try next.
const EXAMPLES: &[&str] = &[
    "stats",
    "sessions --sort size",
    "search 'idempotency key'",
    "preview --class superseded-events --class diffs",
    "prune --class superseded-events --class diffs",
    "rebuild --class events",
    "check",
];
