//! `headwater conversation cutover`: a host's database becomes a conversation store, and the host's journal goes (C29, C30).

use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use headwater_store::{Inspection, JournalPart, Standing};
use headwater_store_sqlite::host_files::{self, HostFile};
use headwater_upkeep::holders;
use serde::Serialize;

use super::place::Place;
use super::store::{self, Writer};
use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::confirm::confirm;
use crate::failure::{Failure, conversation as failure};
use crate::output::Output;
use crate::render::name::name;
use crate::render::size::{counted, size};
use crate::render::text::printable;
use crate::status::Status;

/// Take over the database of an agent host (kandev): remove the journal that it kept of every change, and count changes from now on.
///
/// Sessions, turns and messages stay as they are, to the byte. A file is copied and the copy checked before anything goes; for
/// PostgreSQL make a backup yourself. Stop the host first. Going back takes the copy and the program that made the journal.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = CUTOVER)]
pub(crate) struct Args {
    /// The host's folder of plugins, in whose `.host` it kept copies of events [default: where it is beside the database].
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

const CUTOVER: &str = "\
The file does not shrink, and its free pages keep old text until it is compacted.
Exit status 4 where there is nothing to do, so it may run before each start.";

/// What a program learns before the confirmation.
#[derive(Serialize)]
struct Planned<'a> {
    store: String,
    journal: &'a [JournalPart],
    journal_bytes: ByteCount,
    /// What is added to the schema, and put in its place.
    missing: &'a [String],
    triggers: &'a [String],
    /// The name of the copy before its number; none where none is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
    files: Vec<File>,
}

/// One of the files that a host kept beside its plugins.
#[derive(Serialize)]
struct File {
    path: PathBuf,
    bytes: ByteCount,
    /// Why it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// What was done.
#[derive(Serialize)]
struct CutOver {
    store: String,
    removed: Vec<&'static str>,
    bytes_freed_inside: ByteCount,
    triggers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
    files: Vec<File>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    // A plan alone changes nothing.
    let found = if args.confirm.yes { store::look_to_write(&place)? } else { store::look(&place)? };
    failure::ensure_store(found.standing, &place.shown())?;
    let folders = folders(args, &place);
    let files: Vec<File> =
        folders.iter().flat_map(|folder| host_files::find(folder)).map(File::from).collect();
    if found.is_current() && files.is_empty() {
        return nothing(&place, app);
    }
    let is_file = place.file().is_some();
    let backup = (is_file && !found.journal.is_empty()).then(|| format!("{}.before-cutover-", place.shown()));
    let planned = Planned {
        store: place.shown(),
        journal: &found.journal,
        journal_bytes: found.journal_bytes(),
        missing: &found.missing,
        triggers: &found.triggers,
        backup,
        files,
    };
    if app.out.is_json() {
        app.out.item("plan", &planned)?;
    } else {
        show_plan(&planned, &found, is_file, &mut app.out)?;
    }
    confirm(app, args.confirm.yes, "Remove the journal?")?;
    let (triggers, backup) = change(&place, &found)?;
    // Only now: the copies outlive the journal, not the other way round.
    let files: Vec<File> =
        folders.iter().flat_map(|folder| host_files::remove(folder)).map(File::from).collect();
    let done = CutOver {
        store: place.shown(),
        removed: found.journal.iter().map(|part| part.name).collect(),
        bytes_freed_inside: found.journal_bytes(),
        triggers,
        backup,
        files,
    };
    if let Some(stays) = done.files.iter().find(|file| file.refused.is_some()) {
        return Err(refused(stays, &done));
    }
    if app.out.is_json() {
        app.out.result(Status::Done, &done)?;
    } else {
        show(&done, &mut app.out)?;
    }
    Ok(Status::Done)
}

fn nothing(place: &Place, app: &mut App) -> Result<Status, Failure> {
    let store = place.shown();
    if app.out.is_json() {
        let nothing: [&str; 0] = [];
        app.out.result(
            Status::Nothing,
            &serde_json::json!({ "store": store, "removed": nothing, "files": nothing }),
        )?;
    } else {
        app.out
            .line(format_args!("{store}: no journal is left, and everything is in place; nothing to do"))?;
    }
    Ok(Status::Nothing)
}

/// Changes the schema, where it needs that. Answers the triggers that were put in place, and the copy.
fn change(place: &Place, found: &Inspection) -> Result<(Vec<String>, Option<PathBuf>), Failure> {
    if found.is_current() {
        return Ok((Vec::new(), None));
    }
    if let Some(path) = place.file() {
        ensure_alone(path)?;
    }
    let writer = Writer::open_any(place)?;
    let upgrade = writer.upgrade();
    writer.close();
    Ok(upgrade.unwrap_or_else(|| (found.triggers.clone(), None)))
}

/// Nothing keeps an old host from writing into its journal while the copy is made (C29).
fn ensure_alone(path: &Path) -> Result<(), Failure> {
    let Ok(found) = holders::of(path) else { return Ok(()) };
    let names: Vec<String> =
        found.holders.iter().map(|holder| format!("{} ({})", holder.command, holder.pid)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format_args!("{} is open in {}", path.display(), names.join(", "));
    Err(Failure::new(Status::Blocked, "in-use", message)
        .with_hint("stop the agent host and whatever else has it open; nothing was changed"))
}

/// The folders of plugins that are looked into: the one named, else those that a host has beside its database.
fn folders(args: &Args, place: &Place) -> Vec<PathBuf> {
    if let Some(named) = &args.plugins {
        return vec![named.clone()];
    }
    let Some(folder) = place.file().and_then(|path| path.canonicalize().ok()?.parent().map(Path::to_owned))
    else {
        return Vec::new();
    };
    let mut folders = vec![folder.clone(), folder.join("plugins")];
    // A host has its database in `data`, and `plugins` beside that.
    if folder.file_name().is_some_and(|name| name == "data") {
        folders.extend(folder.parent().map(|home| home.join("plugins")));
    }
    folders
}

fn refused(file: &File, done: &CutOver) -> Failure {
    let why = file.refused.as_deref().unwrap_or_default();
    let copy =
        done.backup.as_ref().map(|backup| format!("; the copy is {}", backup.display())).unwrap_or_default();
    let message = format_args!("the store is ready{copy}, but {} stays: {why}", file.path.display());
    Failure::new(Status::Blocked, "host-file", message)
        .with_hint("look at it, remove it by hand, or run the same command again")
}

impl From<HostFile> for File {
    fn from(found: HostFile) -> Self {
        Self { path: found.path, bytes: found.bytes, refused: found.refused.map(|why| why.to_string()) }
    }
}

fn show_plan(
    planned: &Planned<'_>,
    found: &Inspection,
    is_file: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    out.line(&planned.store)?;
    if found.standing == Standing::Host {
        out.line("  an agent host's database becomes a conversation store; its rows stay as they are")?;
    }
    if !planned.journal.is_empty() {
        let parts = counted(planned.journal.len() as u64, ["part", "parts"]);
        out.line(format_args!("  the journal goes: {parts}, {}", size(planned.journal_bytes)))?;
        for part in planned.journal {
            let bytes = if part.bytes.is_zero() { String::new() } else { format!(", {}", size(part.bytes)) };
            out.line(format_args!("    {} {}{bytes}", name(&part.kind), part.name))?;
        }
    }
    if !planned.missing.is_empty() {
        out.line(format_args!("  added: {}", printable(&planned.missing.join(", "))))?;
    }
    if !planned.triggers.is_empty() {
        out.line(format_args!(
            "  put in place: {}",
            counted(planned.triggers.len() as u64, ["trigger", "triggers"])
        ))?;
    }
    match &planned.backup {
        Some(backup) => out.line(format_args!("  a copy is made and checked before: {backup}N"))?,
        None if !is_file => out.line("  no copy is made: back the database up with pg_dump before")?,
        None => {}
    }
    for file in &planned.files {
        let path = file.path.to_string_lossy();
        match &file.refused {
            Some(why) => {
                out.line(format_args!("  stays: {} ({why})", printable(&path)))?;
            }
            None => {
                out.line(format_args!("  removed after that: {} ({})", printable(&path), size(file.bytes)))?;
            }
        }
    }
    Ok(())
}

fn show(done: &CutOver, out: &mut Output) -> Result<(), Failure> {
    out.line(format_args!("{}: ready as a conversation store", done.store))?;
    if !done.removed.is_empty() {
        out.line(format_args!(
            "the journal is gone; {} are free for reuse inside",
            size(done.bytes_freed_inside)
        ))?;
    }
    if let Some(backup) = &done.backup {
        out.line(format_args!("the copy from before is {}", printable(&backup.to_string_lossy())))?;
    }
    for file in &done.files {
        out.line(format_args!("removed {}", printable(&file.path.to_string_lossy())))?;
    }
    Ok(())
}
