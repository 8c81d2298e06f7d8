//! `headwater export`: conversations out of the database.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, ValueEnum};
use headwater_model::SessionId;
use headwater_upkeep::ReadDatabase;
use headwater_upkeep::export::{self, ExportFormat, ExportScope, ExportTotals};
use tempfile::{Builder, NamedTempFile};

use crate::app::App;
use crate::failure::Failure;
use crate::output::Pipe;
use crate::progress::Watch;
use crate::render::size::{count, counted};
use crate::status::Status;

/// Write conversations as lossless JSON lines or as Markdown to read, with the subagents that they started.
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).args(["sessions", "all", "recoverable"]))]
#[command(after_help = "Examples:
  headwater export ses_1234 --format markdown | less
  headwater export --all --output everything.jsonl
  headwater export --recoverable --output rescued.jsonl")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct Args {
    /// These sessions.
    #[arg(value_name = "SESSION")]
    sessions: Vec<SessionId>,
    /// Every session, and what is recoverable.
    #[arg(long)]
    all: bool,
    /// What belongs to sessions that have no row: it may be the only copy of a conversation.
    #[arg(long)]
    recoverable: bool,
    /// Leave out the subagents of the sessions named.
    #[arg(long, conflicts_with_all = ["all", "recoverable"])]
    no_children: bool,
    /// How it is written.
    #[arg(long, value_name = "FORMAT", default_value = "json-lines")]
    format: Format,
    /// In Markdown, write reasoning and tool calls too. JSON lines always have everything.
    #[arg(long)]
    technical: bool,
    /// Write into this file, which must not exist, instead of standard output. --json needs it.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there already.
    #[arg(long, requires = "output")]
    force: bool,
}

/// How an export is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Every row, lossless, one JSON object per line.
    JsonLines,
    /// Messages to read.
    Markdown,
}

/// How the name of a file ends that an export has not finished.
const UNFINISHED: &str = ".export";
/// Letters and digits between the name of the export and that ending, which `tempfile` chooses.
const MIDDLE_BYTES: usize = 6;
/// Age from which an unfinished file without a lock is one that a killed export left.
const UNFINISHED_AGE_MIN: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    if app.out.is_json() && args.output.is_none() {
        return Err(Failure::usage("with --json the export itself goes into a file: add --output"));
    }
    if let Some(output) = &args.output {
        app.ensure_apart(output)?;
    }
    let database = ReadDatabase::open(&app.database()?)?;
    let totals = match &args.output {
        Some(path) => into_file(path, args, &database, app)?,
        None => into_pipe(args, &database, app)?,
    };
    database.finish()?;
    let status = if totals.sessions == 0 { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, &totals)?;
    } else if args.output.is_some() {
        app.out.line(format_args!(
            "{}, {} of them without a row, {}, {} that cannot be decoded",
            counted(totals.sessions, ["session", "sessions"]),
            count(totals.recovered),
            counted(totals.entries, ["entry", "entries"]),
            count(totals.unreadable)
        ))?;
    }
    Ok(status)
}

fn into_pipe(args: &Args, database: &ReadDatabase, app: &mut App) -> Result<ExportTotals, Failure> {
    // No bar: the text goes to the same terminal, or into a pipe whose reader shows how far it is.
    let watch = Watch::silent(app.cancel.clone());
    let mut pipe = Pipe::new(&mut app.out);
    let written = export::run(database, &args.scope(), args.format(), &watch, &mut pipe);
    pipe.end()?;
    database.ensure_unchanged()?;
    Ok(written?)
}

/// Writes beside `path` first, so that a file of that name is whole or not there.
fn into_file(path: &Path, args: &Args, database: &ReadDatabase, app: &App) -> Result<ExportTotals, Failure> {
    let fail = |error: io::Error| of_file(path, &error);
    // What is put under a name takes the place of a device as well as of a file.
    let is_file = path.metadata().map_or(true, |found| found.is_file());
    if !is_file || (!args.force && path.symlink_metadata().is_ok()) {
        return Err(fail(io::Error::from(io::ErrorKind::AlreadyExists)));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    sweep(folder, &prefix).map_err(fail)?;
    let file: NamedTempFile =
        Builder::new().prefix(&prefix).suffix(UNFINISHED).tempfile_in(folder).map_err(fail)?;
    file.as_file().lock().map_err(fail)?;
    let watch = Watch::new(app.cancel.clone());
    let mut writer = BufWriter::with_capacity(256 * 1024, file.as_file());
    let written = export::run(database, &args.scope(), args.format(), &watch, &mut writer);
    watch.end();
    // Before the file has its name: a torn reading looks like damage, or like a whole export.
    database.ensure_unchanged()?;
    let totals = match written {
        Err(headwater_upkeep::ReadError::Output(error)) => return Err(fail(error)),
        written => written?,
    };
    writer.flush().map_err(fail)?;
    drop(writer);
    file.as_file().sync_all().map_err(fail)?;
    let named: Result<File, _> = if args.force { file.persist(path) } else { file.persist_noclobber(path) };
    named.map_err(|error| fail(error.error))?;
    Ok(totals)
}

/// Removes what killed exports to the same place left. Who still writes holds a lock on the file; one that is not yet a moment old may
/// be about to take it.
fn sweep(folder: &Path, prefix: &str) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let middle = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(UNFINISHED));
        let is_ours = middle.is_some_and(|middle| {
            middle.len() == MIDDLE_BYTES && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if !is_ours || !entry.file_type()?.is_file() {
            continue;
        }
        // One that cannot be opened is another user's, and stays.
        let Ok(file) = File::open(entry.path()) else { continue };
        let is_settled = file.metadata()?.modified()?.elapsed().is_ok_and(|age| age >= UNFINISHED_AGE_MIN);
        if is_settled && file.try_lock().is_ok() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn of_file(path: &Path, error: &io::Error) -> Failure {
    let path = path.to_string_lossy();
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Failure::new(Status::Blocked, "exists", format_args!("{path} is there already"))
            .with_hint("name another file, or replace it with --force; nothing was changed");
    }
    Failure::new(Status::Other, "io", format_args!("cannot write {path}: {error}"))
        .with_hint("name a file that you may write, on a disk with room; no file was left there")
}

impl Args {
    fn scope(&self) -> ExportScope {
        if self.all {
            ExportScope::All
        } else if self.recoverable {
            ExportScope::Recoverable
        } else {
            ExportScope::Sessions { ids: self.sessions.clone(), with_children: !self.no_children }
        }
    }

    const fn format(&self) -> ExportFormat {
        match self.format {
            Format::JsonLines => ExportFormat::JsonLines,
            Format::Markdown => ExportFormat::Markdown { with_technical: self.technical },
        }
    }
}
