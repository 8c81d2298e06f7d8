//! `headwater conversation ...`: a conversation store, one file for each verb.

use clap::{Subcommand, ValueEnum};
use headwater_model::WallTime;
use headwater_model::conversation::Author;

use crate::app::App;
use crate::failure::Failure;
use crate::status::Status;

mod backup;
mod check;
mod cutover;
mod export;
mod import;
mod init;
mod place;
mod post;
mod restore;
mod sessions;
mod show;
mod store;

/// Work with a conversation store: sessions, turns and messages with revisions, in SQLite or PostgreSQL.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = PLACES)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const PLACES: &str = "\
The store is the file or address that --db names, else HEADWATER_CONVERSATION_DB, else $XDG_DATA_HOME/headwater/conversations.db.
An address is postgres://USER@HOST/DATABASE; a password belongs into the variable, where other users do not see it, and is never shown.";

/// What to do with the store.
#[derive(Clone, Debug, Subcommand)]
enum Verb {
    Init(init::Args),
    Sessions(sessions::Args),
    Show(show::Args),
    Post(post::Args),
    Cutover(cutover::Args),
    Check(check::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Export(export::Args),
    Import(import::Args),
}

/// Who writes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthorName {
    /// A person.
    User,
    /// The agent, its tools included.
    Agent,
}

impl From<AuthorName> for Author {
    fn from(name: AuthorName) -> Self {
        match name {
            AuthorName::User => Self::User,
            AuthorName::Agent => Self::Agent,
        }
    }
}

/// A time as people read it here: in UTC, as it is stored, to the second.
fn time(time: WallTime) -> String {
    if time == WallTime::UNKNOWN {
        return "unknown".to_owned();
    }
    let text = time.order_time();
    text.as_str().split('.').next().unwrap_or_default().to_owned()
}

pub(crate) fn run(args: Args, app: &mut App) -> Result<Status, Failure> {
    match args.verb {
        Verb::Init(args) => init::run(args, app),
        Verb::Sessions(args) => sessions::run(&args, app),
        Verb::Show(args) => show::run(&args, app),
        Verb::Post(args) => post::run(&args, app),
        Verb::Cutover(args) => cutover::run(&args, app),
        Verb::Check(args) => check::run(args, app),
        Verb::Backup(args) => backup::run(&args, app),
        Verb::Restore(args) => restore::run(&args, app),
        Verb::Export(args) => export::run(&args, app),
        Verb::Import(args) => import::run(&args, app),
    }
}
