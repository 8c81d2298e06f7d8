//! `headwater conversation export`: the rows of a store as lines of JSON.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use headwater_model::SessionId;
use headwater_store::ReadError;
use headwater_store::transfer::{Line, Owner, StoredRow, Table};
use headwater_upkeep::open::is_of_database;
use serde::Serialize;

use super::place::Place;
use super::store::{self, History};
use crate::app::App;
use crate::cancel::Cancel;
use crate::failure::{Failure, conversation as failure};
use crate::output::{Pipe, WholeFile};
use crate::render::size::counted;
use crate::status::Status;

/// Write the rows of the store as lines of JSON, as they are at one instant: to keep, or to `import` into another store.
///
/// Sessions, turns and messages with their tasks and workspaces, byte for byte. What else an agent host keeps in its tables stays there.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: headwater conversation export --output all.jsonl")]
pub(crate) struct Args {
    /// Only these sessions.
    #[arg(value_name = "SESSION")]
    sessions: Vec<SessionId>,
    /// Write into this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there already.
    #[arg(long, requires = "output")]
    force: bool,
}

/// What was written.
#[derive(Clone, Copy, Default, Serialize)]
struct Exported {
    sessions: u64,
    rows: u64,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    if app.out.is_json() && args.output.is_none() {
        return Err(Failure::usage("with --json the export itself goes into a file: add --output"));
    }
    let place = Place::of(app)?;
    let shown = place.shown();
    if let (Some(path), Some(output)) = (place.file(), &args.output)
        && is_of_database(path, output)
    {
        let message = format_args!("{} is the store, or has the name of a file of it", output.display());
        return Err(Failure::new(Status::Blocked, "exists", message)
            .with_hint("name another file; nothing was changed"));
    }
    let cancel = app.cancel.clone();
    let exported = match &args.output {
        Some(output) => into_file(output, args, &place, &shown, &cancel)?,
        None => store::read(&place, |history| {
            let mut pipe = Pipe::new(&mut app.out);
            let written =
                Export { history, to: &mut pipe, shown: &shown, cancel: &cancel, done: Exported::default() }
                    .run(args);
            pipe.end()?;
            written.map_err(|stopped| stopped.failure(|error| Failure::output(error, Status::Done)))
        })?,
    };
    let status = if exported.sessions == 0 { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, &exported)?;
    } else if args.output.is_some() {
        let sessions = counted(exported.sessions, ["session", "sessions"]);
        app.out.line(format_args!("{sessions}, {}", counted(exported.rows, ["row", "rows"])))?;
    }
    Ok(status)
}

fn into_file(
    output: &Path,
    args: &Args,
    place: &Place,
    shown: &str,
    cancel: &Cancel,
) -> Result<Exported, Failure> {
    let file = WholeFile::create(output, args.force)?;
    // The file gets its name after the reading is known to be of one piece.
    let exported = store::read(place, |history| {
        let mut writer = file.writer();
        let written = Export { history, to: &mut writer, shown, cancel, done: Exported::default() }.run(args);
        let exported = written.map_err(|stopped| stopped.failure(|error| file.failure(error)))?;
        writer.flush().map_err(|error| file.failure(&error))?;
        Ok(exported)
    })?;
    file.put_in_place()?;
    Ok(exported)
}

/// Why an export stopped.
enum Stopped {
    Output(io::Error),
    Other(Failure),
}

impl Stopped {
    fn failure(self, of_output: impl FnOnce(&io::Error) -> Failure) -> Failure {
        match self {
            Self::Output(error) => of_output(&error),
            Self::Other(failure) => failure,
        }
    }
}

/// Sessions that are listed at a time.
const PAGE: u32 = 100;

struct Export<'a> {
    history: &'a dyn History,
    to: &'a mut dyn Write,
    shown: &'a str,
    cancel: &'a Cancel,
    done: Exported,
}

impl Export<'_> {
    fn run(mut self, args: &Args) -> Result<Exported, Stopped> {
        self.line(&Line::Begin)?;
        if args.sessions.is_empty() {
            self.rows(Table::Workspaces, Owner::Everything)?;
            self.rows(Table::Tasks, Owner::Everything)?;
            let mut after = String::new();
            loop {
                let page = self.history.overview(&after, PAGE).map_err(|error| self.stopped(&error))?;
                let Some(last) = page.last() else { break };
                after.clone_from(&last.session.id);
                for found in &page {
                    self.session(&found.session.id)?;
                }
            }
        } else {
            self.named(&args.sessions)?;
        }
        self.line(&Line::End { rows: self.done.rows })?;
        Ok(self.done)
    }

    /// The sessions, with what owns them, each once and in the order of their ids.
    fn named(&mut self, sessions: &[SessionId]) -> Result<(), Stopped> {
        let sessions: BTreeSet<&SessionId> = sessions.iter().collect();
        let mut tasks = BTreeSet::new();
        for session in &sessions {
            let found = self.history.session(session).map_err(|error| self.stopped(&error))?;
            let found = found.ok_or_else(|| Stopped::Other(failure::unknown_session(self.shown)))?;
            tasks.insert(found.task_id);
        }
        let mut workspaces = BTreeSet::new();
        for task in &tasks {
            let mut see = |row: StoredRow| {
                workspaces.extend(row.text("workspace_id").map(str::to_owned));
                ControlFlow::Break(())
            };
            let seen = self.history.each_row(Table::Tasks, Owner::Key(task), &mut see);
            seen.map_err(|error| self.stopped(&error))?;
        }
        for workspace in &workspaces {
            self.rows(Table::Workspaces, Owner::Key(workspace))?;
        }
        for task in &tasks {
            self.rows(Table::Tasks, Owner::Key(task))?;
        }
        sessions.into_iter().try_for_each(|session| self.session(session.as_str()))
    }

    fn session(&mut self, id: &str) -> Result<(), Stopped> {
        if self.cancel.is_cancelled() {
            return Err(Stopped::Other(Failure::cancelled("the export is not complete")));
        }
        self.rows(Table::Sessions, Owner::Key(id))?;
        self.rows(Table::Turns, Owner::Session(id))?;
        self.rows(Table::Messages, Owner::Session(id))?;
        self.rows(Table::PromptSeq, Owner::Session(id))?;
        self.done.sessions += 1;
        Ok(())
    }

    fn rows(&mut self, table: Table, owner: Owner<'_>) -> Result<(), Stopped> {
        let mut ended = Ok(());
        let history = self.history;
        let mut write = |row: StoredRow| {
            ended = self.line(&Line::Row(row));
            self.done.rows += 1;
            if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let read = history.each_row(table, owner, &mut write);
        read.map_err(|error| self.stopped(&error))?;
        ended
    }

    fn line(&mut self, line: &Line) -> Result<(), Stopped> {
        let mut text = line.to_json();
        text.push('\n');
        self.to.write_all(text.as_bytes()).map_err(Stopped::Output)
    }

    fn stopped(&self, error: &ReadError) -> Stopped {
        Stopped::Other(failure::of_read(error, self.shown))
    }
}
