//! `headwater conversation init`: makes a store.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use headwater_store::{Inspection, Standing};
use serde::Serialize;

use super::place::Place;
use super::store::{self, Writer};
use crate::app::App;
use crate::failure::{Failure, conversation as failure};
use crate::status::Status;

/// Make an empty conversation store: a file, or tables in a PostgreSQL database.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(after_help = "Example: headwater conversation init --db ./conversations.db")]
pub(crate) struct Args {
    /// Take over the database of an agent host (kandev), whose rows stay as they are. One that has a journal needs `cutover`.
    #[arg(long)]
    adopt: bool,
}

/// What was made.
#[derive(Serialize)]
struct Made {
    store: String,
    /// `created`, `adopted`, `completed` (what an interrupted run had begun), or `there-already`.
    outcome: &'static str,
}

/// Readable by its owner alone: conversations are nobody else's business.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

pub(crate) fn run(args: Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let found = match store::look_to_write(&place) {
        Ok(found) => found,
        Err(failure) if matches!(failure.code, "not-found" | "empty-file") && place.file().is_some() => {
            Inspection::of(Standing::Empty)
        }
        Err(failure) => return Err(failure),
    };
    let outcome = outcome(&found, args, &place)?;
    if outcome != "there-already" {
        if let Place::File { path, is_default } = &place
            && outcome == "created"
        {
            create(path, *is_default)?;
        }
        Writer::open_any(&place)?.close();
    }
    let status = if outcome == "there-already" { Status::Nothing } else { Status::Done };
    let made = Made { store: place.shown(), outcome };
    if app.out.is_json() {
        app.out.result(status, &made)?;
    } else {
        let words = match outcome {
            "created" => "a new conversation store",
            "adopted" => "taken over as a conversation store; its rows are as they were",
            "completed" => "completed",
            _ => "a conversation store already; nothing to do",
        };
        app.out.line(format_args!("{}: {words}", made.store))?;
    }
    Ok(status)
}

/// What is to be done about what is there.
fn outcome(found: &Inspection, args: Args, place: &Place) -> Result<&'static str, Failure> {
    let shown = place.shown();
    match found.standing {
        Standing::Empty => Ok("created"),
        Standing::Ours if found.is_current() => Ok("there-already"),
        Standing::Host | Standing::Ours if !found.journal.is_empty() => Err(failure::needs_cutover(&shown)),
        Standing::Ours => Ok("completed"),
        Standing::Host if args.adopt => Ok("adopted"),
        Standing::Host => {
            let message = format_args!("{shown}: an agent host's database is there already");
            Err(Failure::new(Status::Blocked, "exists", message).with_hint(
                "add --adopt to make it a conversation store, with the host stopped; nothing was changed",
            ))
        }
        Standing::Foreign { .. } | Standing::Newer => {
            failure::ensure_store(found.standing, &shown).map(|()| "there-already")
        }
    }
}

/// Makes the empty file, which is one of a store that has not been made.
fn create(path: &Path, is_default: bool) -> Result<(), Failure> {
    let fail = |error: io::Error| {
        let message = format_args!("cannot make {}: {error}", path.display());
        Failure::new(Status::Other, "io", message).with_hint("name a file in a folder that you may write to")
    };
    if is_default && let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(fail)?;
    }
    if fs::metadata(path).is_ok() {
        return Ok(());
    }
    match File::options().write(true).create_new(true).mode(FILE_MODE).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(fail(error)),
        _ => Ok(()),
    }
}
