//! `headwater locate`: which database is meant, and who has it open.

use std::path::{Path, PathBuf};

use headwater_upkeep::HeldLock;
use headwater_upkeep::holders::{self, Coverage, HeldFile, Holder, Holders};
use headwater_upkeep::locate::{self, Candidate, Environment, Located, Reason};
use serde::Serialize;

use crate::app::App;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::size::{counted, size};
use crate::render::table::{Column, Table};
use crate::render::text::printable;
use crate::render::time::local;
use crate::status::Status;

/// Show which database is used, why, who has it open, and which others there are.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(after_help = "Exit status 4 where no database is there. The first line is the path alone.")]
pub(crate) struct Args {}

/// What `locate` tells a program.
#[derive(Serialize)]
struct Answer {
    path: PathBuf,
    exists: bool,
    /// `named-by-option`, or why the environment leads there.
    reason: &'static str,
    /// Absent where the file does not exist or cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    holders: Option<Holders>,
    /// Absent where the environment names no home.
    #[serde(skip_serializing_if = "Option::is_none")]
    standard: Option<Located>,
}

pub(crate) fn run(_: Args, app: &mut App) -> Result<Status, Failure> {
    let answer = answer(app.db.as_deref())?;
    let status = if answer.exists { Status::Done } else { Status::Nothing };
    if app.out.is_json() {
        app.out.result(status, &answer)?;
    } else {
        show(&answer, &mut app.out)?;
    }
    Ok(status)
}

fn answer(named: Option<&Path>) -> Result<Answer, Failure> {
    let standard = locate::database(&Environment::of_process());
    let (path, reason, standard) = match (named, standard) {
        (Some(path), standard) => (path.to_owned(), "named-by-option", standard.ok()),
        (None, Ok(standard)) => (standard.path.clone(), name_of(standard.reason), Some(standard)),
        (None, Err(error)) => return Err(error.into()),
    };
    Ok(Answer { exists: path.is_file(), holders: holders::of(&path).ok(), path, reason, standard })
}

const fn name_of(reason: Reason) -> &'static str {
    match reason {
        Reason::NamedByEnvironment => "named-by-environment",
        Reason::Channel => "channel",
        Reason::Standard => "standard",
        Reason::OnlyOne => "only-one",
    }
}

fn explain(reason: &str) -> &'static str {
    match reason {
        "named-by-option" => "named with --db",
        "named-by-environment" => "named by OPENCODE_DB",
        "channel" => "the file of the channel that OPENCODE_CHANNEL names",
        "only-one" => "the only database in OpenCode's data folder",
        _ => "the standard place",
    }
}

fn show(answer: &Answer, out: &mut Output) -> Result<(), Failure> {
    out.line(printable(&answer.path.to_string_lossy()))?;
    out.line(format_args!("  {}", explain(answer.reason)))?;
    if !answer.exists {
        out.line("  no database is there")?;
    }
    if let Some(holders) = &answer.holders {
        show_holders(holders, out)?;
    }
    let Some(standard) = &answer.standard else { return Ok(()) };
    show_candidates(&standard.candidates, out)?;
    out.heading("Folders")?;
    let mut table = Table::new([Column::Text("Folder"), Column::Text("Holds")]);
    let folders =
        [(&standard.data_folder, "OpenCode's data"), (&standard.state_folder, "Headwater's receipts")];
    let neighbours = standard.neighbours.iter().map(|neighbour| (&neighbour.path, neighbour.holds));
    for (path, holds) in folders.into_iter().chain(neighbours) {
        table.row([printable(&path.to_string_lossy()).into_owned(), holds.to_owned()]);
    }
    out.table(&mut table)
}

fn show_candidates(candidates: &[Candidate], out: &mut Output) -> Result<(), Failure> {
    if candidates.is_empty() {
        return Ok(());
    }
    out.heading("Databases")?;
    let columns = [
        Column::Text("Path"),
        Column::Figure("Size"),
        Column::Figure("Log"),
        Column::Whole("Last written"),
        Column::Text(""),
    ];
    let mut table = Table::new(columns);
    for found in candidates {
        table.row([
            printable(&found.path.to_string_lossy()).into_owned(),
            size(found.bytes),
            size(found.log_bytes),
            found.modified.map(local).unwrap_or_default(),
            if found.is_default { "default" } else { "" }.to_owned(),
        ]);
    }
    out.table(&mut table)
}

fn show_holders(found: &Holders, out: &mut Output) -> Result<(), Failure> {
    out.heading("Open in")?;
    if found.holders.is_empty() {
        out.line("no other process")?;
    } else {
        let columns = [
            Column::Figure("Process"),
            Column::Text("Program"),
            Column::Text("Files"),
            Column::Text("Locks"),
        ];
        let mut table = Table::new(columns);
        for holder in &found.holders {
            table.row(row(holder));
        }
        out.table(&mut table)?;
    }
    match found.coverage {
        Coverage::Complete => Ok(()),
        Coverage::Partial { hidden_processes } => {
            let hidden = counted(hidden_processes.into(), ["process", "processes"]);
            out.line(format_args!("{hidden} of other users could not be looked at"))
        }
        Coverage::Unknown => out.line("this system does not tell which processes have a file open"),
    }
}

fn row(holder: &Holder) -> [String; 4] {
    let files: Vec<_> = holder
        .files
        .iter()
        .map(|file| match file {
            HeldFile::Database => "database",
            HeldFile::Log => "log",
            HeldFile::Index => "index",
        })
        .chain(holder.holds_deleted.then_some("one of them deleted"))
        .collect();
    let locks: Vec<_> = holder.locks.iter().map(|lock| lock_name(*lock)).collect();
    [holder.pid.to_string(), printable(&holder.command).into_owned(), files.join(", "), locks.join(", ")]
}

const fn lock_name(lock: HeldLock) -> &'static str {
    match lock {
        HeldLock::Exclusive => "exclusive",
        HeldLock::Writing => "writing",
        HeldLock::Attached => "attached",
        HeldLock::LogWriter => "writes the log",
        HeldLock::Checkpoint => "checkpoint",
        HeldLock::Recovery => "recovery",
        HeldLock::ReadsLog => "reads an old state: the log cannot be reset",
    }
}
