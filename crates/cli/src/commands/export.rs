//! `headwater export`: conversations out of the database.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, ValueEnum};
use headwater_model::SessionId;
use headwater_upkeep::ReadDatabase;
use headwater_upkeep::export::{self, ExportFormat, ExportScope, ExportTotals};

use crate::app::App;
use crate::failure::Failure;
use crate::output::{Pipe, WholeFile};
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

/// Writes a file that is whole or not there.
fn into_file(path: &Path, args: &Args, database: &ReadDatabase, app: &App) -> Result<ExportTotals, Failure> {
    let file = WholeFile::create(path, args.force)?;
    let watch = Watch::new(app.cancel.clone());
    let mut writer = file.writer();
    let written = export::run(database, &args.scope(), args.format(), &watch, &mut writer);
    watch.end();
    // Before the file has its name: a torn reading looks like damage, or like a whole export.
    database.ensure_unchanged()?;
    let totals = match written {
        Err(headwater_upkeep::ReadError::Output(error)) => return Err(file.failure(&error)),
        written => written?,
    };
    writer.flush().map_err(|error| file.failure(&error))?;
    drop(writer);
    file.put_in_place()?;
    Ok(totals)
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
