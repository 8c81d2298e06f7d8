//! The verbs, one file each.

use std::time::Duration;

use clap::Subcommand;

use crate::app::App;
use crate::failure::Failure;
use crate::status::Status;

mod backup;
mod check;
mod completions;
mod conversation;
mod demo;
mod export;
mod locate;
mod man;
mod preview;
mod prune;
mod rebuild;
mod restore;
mod retention;
mod salvage;
mod search;
mod sessions;
mod show;
mod stats;
mod undo;
mod vacuum;

/// What the user wants done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Locate(locate::Args),
    Stats(stats::Args),
    Sessions(sessions::Args),
    Show(show::Args),
    Search(search::Args),
    Export(export::Args),
    Preview(preview::Args),
    Prune(prune::Args),
    Rebuild(rebuild::Args),
    Vacuum(vacuum::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Check(check::Args),
    Salvage(salvage::Args),
    Undo(undo::Args),
    Retention(retention::Args),
    Conversation(conversation::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The names of all verbs.
pub(crate) const NAMES: [&str; 20] = [
    "locate",
    "stats",
    "sessions",
    "show",
    "search",
    "export",
    "preview",
    "prune",
    "rebuild",
    "vacuum",
    "backup",
    "restore",
    "check",
    "salvage",
    "undo",
    "retention",
    "conversation",
    "demo",
    "completions",
    "man",
];

/// How long a server that holds the database may take to say whether a session is busy.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);

impl Command {
    /// The name that calls it.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Locate(_) => "locate",
            Self::Stats(_) => "stats",
            Self::Sessions(_) => "sessions",
            Self::Show(_) => "show",
            Self::Search(_) => "search",
            Self::Export(_) => "export",
            Self::Preview(_) => "preview",
            Self::Prune(_) => "prune",
            Self::Rebuild(_) => "rebuild",
            Self::Vacuum(_) => "vacuum",
            Self::Backup(_) => "backup",
            Self::Restore(_) => "restore",
            Self::Check(_) => "check",
            Self::Salvage(_) => "salvage",
            Self::Undo(_) => "undo",
            Self::Retention(_) => "retention",
            Self::Conversation(_) => "conversation",
            Self::Demo(_) => "demo",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }
}

/// Runs `command`. The answer says how it ended; the exit status of a failure is part of the failure.
pub(crate) fn run(command: Command, app: &mut App) -> Result<Status, Failure> {
    match command {
        Command::Locate(args) => locate::run(args, app),
        Command::Stats(args) => stats::run(args, app),
        Command::Sessions(args) => sessions::run(&args, app),
        Command::Show(args) => show::run(&args, app),
        Command::Search(args) => search::run(&args, app),
        Command::Export(args) => export::run(&args, app),
        Command::Preview(args) => preview::run(&args, app),
        Command::Prune(args) => prune::run(&args, app),
        Command::Rebuild(args) => rebuild::run(&args, app),
        Command::Vacuum(args) => vacuum::run(args, app),
        Command::Backup(args) => backup::run(&args, app),
        Command::Restore(args) => restore::run(&args, app),
        Command::Check(args) => check::run(args, app),
        Command::Salvage(args) => salvage::run(&args, app),
        Command::Undo(args) => undo::run(&args, app),
        Command::Retention(args) => retention::run(&args, app),
        Command::Conversation(args) => conversation::run(args, app),
        Command::Demo(args) => demo::run(&args, app),
        Command::Completions(args) => completions::run(&args, app),
        Command::Man(args) => man::run(&args, app),
    }
}

/// Writes a generated document: as it is, or for a program as the text in `{"document": ...}`.
fn write_document(app: &mut App, document: &[u8]) -> Result<Status, Failure> {
    if app.out.is_json() {
        let text = String::from_utf8_lossy(document);
        app.out.result(Status::Done, &serde_json::json!({ "document": text }))?;
    } else {
        app.out.raw(document)?;
    }
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_list_of_names_is_complete() {
        let command = Cli::command();
        let defined: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(defined, NAMES);
    }
}
