//! `headwater conversation import`: takes in what `export` wrote.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use headwater_store::transfer::{Line, LineError, Owner, StoredRow, Table, Value};
use headwater_store::{BadMutation, WriteErrorKind};
use serde::Serialize;

use super::place::Place;
use super::store::{self, History, Writer};
use crate::app::App;
use crate::cancel::Cancel;
use crate::failure::{Failure, conversation as failure};
use crate::render::size::{count, counted};
use crate::render::text::printable;
use crate::status::Status;

/// Take in the rows that `export` wrote, of this store or another one, SQLite or PostgreSQL.
///
/// Rows that are there already, the same, are left alone, so an import that was interrupted is repeated. A row that is there and says something
/// else refuses the whole import before anything is written.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Example: headwater conversation import all.jsonl --db postgres://headwater@localhost/conversations"
)]
pub(crate) struct Args {
    /// The export; `-` reads it from standard input.
    #[arg(value_name = "FILE")]
    from: PathBuf,
}

/// What was done.
#[derive(Clone, Copy, Default, Serialize)]
struct Done {
    rows: u64,
    added: u64,
    present: u64,
    /// Transactions.
    batches: u64,
    /// Of these, how many whose receipts account for every change of every session in them.
    certified: u64,
}

/// Rows of one transaction: as many as a receipt can describe.
const ROWS_MAX: usize = 256;
/// Bytes of text in one transaction, but for a row that has more alone.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest line. Content of 16 MiB is written in at most six times as many bytes.
const LINE_MAX: u64 = 256 * 1024 * 1024;

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let shown = place.shown();
    let mut export = Export::open(&args.from)?;
    // All of it is read before anything is written: one that is cut off, or that contradicts the store, changes nothing.
    let rows = store::read(&place, |history| export.compare(history, &place, &app.cancel))?;
    let writer = Writer::open(&place)?;
    let mut done = Done { rows, ..Done::default() };
    let ended = export.import(&writer, &mut done, &shown, &app.cancel);
    writer.close();
    ended?;
    let status = if done.added == 0 { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, &done)?;
    } else {
        app.out.line(format_args!(
            "{} added in {}, {} there already",
            counted(done.added, ["row", "rows"]),
            counted(done.batches, ["transaction", "transactions"]),
            count(done.present)
        ))?;
    }
    Ok(status)
}

/// An export that is read twice.
struct Export {
    name: String,
    file: File,
}

/// A row, and where it stands.
struct Placed {
    line: u64,
    row: StoredRow,
}

impl Export {
    fn open(path: &Path) -> Result<Self, Failure> {
        let name = printable(&path.to_string_lossy()).into_owned();
        let fail = |error: io::Error| {
            Failure::new(Status::Other, "io", format_args!("cannot read {name}: {error}"))
                .with_hint("name the file that `export` wrote; nothing was changed")
        };
        let file = if path == Path::new("-") {
            let mut spool = tempfile::tempfile().map_err(fail)?;
            io::copy(&mut io::stdin().lock(), &mut spool).map_err(fail)?;
            spool
        } else {
            let file = File::open(path).map_err(fail)?;
            if !file.metadata().map_err(fail)?.is_file() {
                return Err(Failure::new(
                    Status::Usage,
                    "not-a-file",
                    format_args!("{name} is not a regular file"),
                )
                .with_hint(
                    "name the file that `export` wrote, or `-` for standard input; nothing was changed",
                ));
            }
            file
        };
        Ok(Self { name, file })
    }

    /// Reads all of it, and refuses what is no export and what contradicts the store. Answers how many rows it has.
    fn compare(&mut self, history: &dyn History, place: &Place, cancel: &Cancel) -> Result<u64, Failure> {
        let (shown, is_typed) = (place.shown(), place.file().is_none());
        let name = self.name.clone();
        let mut rows = 0;
        self.each(cancel, &mut |placed| {
            rows += 1;
            if is_typed && let Err(reason) = placed.row.typed() {
                return Err(of_row(&name, &placed, reason));
            }
            if contradicts(history, &placed.row).map_err(|error| failure::of_read(&error, &shown))? {
                return Err(of_row(&name, &placed, BadMutation::DuplicateId));
            }
            Ok(())
        })?;
        Ok(rows)
    }

    fn import(
        &mut self,
        writer: &Writer,
        done: &mut Done,
        shown: &str,
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        let name = self.name.clone();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        self.each(cancel, &mut |placed| {
            let size = placed.row.values.iter().map(bytes_of).sum::<usize>();
            if batch.len() == ROWS_MAX || (bytes + size > BYTES_MAX && !batch.is_empty()) {
                send(writer, std::mem::take(&mut batch), done, &name, shown)?;
                bytes = 0;
            }
            bytes += size;
            batch.push(placed);
            Ok(())
        })?;
        if batch.is_empty() { Ok(()) } else { send(writer, batch, done, &name, shown) }
    }

    /// Gives each row to `take`, in order.
    fn each(
        &mut self,
        cancel: &Cancel,
        take: &mut dyn FnMut(Placed) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let name = &self.name;
        let fail = |error: io::Error| {
            Failure::new(Status::Other, "io", format_args!("cannot read {name}: {error}"))
                .with_hint("run the same command again; rows that are there already are left alone")
        };
        self.file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let mut reader = BufReader::with_capacity(256 * 1024, &self.file);
        let (mut line, mut rows, mut has_ended) = (0, 0, false);
        loop {
            if cancel.is_cancelled() {
                return Err(Failure::cancelled("not everything was taken in"));
            }
            let mut bytes = Vec::new();
            if reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes).map_err(fail)? == 0 {
                break;
            }
            line += 1;
            let text = std::str::from_utf8(&bytes).map_err(|_| of_line(name, line, LineError::Malformed))?;
            let parsed = Line::parse(text).map_err(|error| of_line(name, line, error))?;
            match parsed {
                Line::Begin if line == 1 => {}
                Line::Row(row) if line > 1 && !has_ended => {
                    rows += 1;
                    take(Placed { line, row })?;
                }
                Line::End { rows: said } if line > 1 && !has_ended && said == rows => has_ended = true,
                Line::Begin | Line::Row(_) | Line::End { .. } => {
                    return Err(of_line(name, line, LineError::Malformed));
                }
            }
        }
        if has_ended {
            return Ok(());
        }
        let message = format_args!("{name} is cut off: its last line is missing");
        Err(Failure::new(Status::Damaged, "cut-off", message).with_hint("export again; nothing was changed"))
    }
}

/// Writes a batch.
fn send(
    writer: &Writer,
    batch: Vec<Placed>,
    done: &mut Done,
    name: &str,
    shown: &str,
) -> Result<(), Failure> {
    let lines: Vec<u64> = batch.iter().map(|placed| placed.line).collect();
    let rows: Vec<StoredRow> = batch.into_iter().map(|placed| placed.row).collect();
    let tables: Vec<Table> = rows.iter().map(|row| row.table).collect();
    let imported = writer.import(rows).map_err(|error| {
        if let WriteErrorKind::Refused { index, reason } = error.0 {
            let line = lines.get(index).copied().unwrap_or_default();
            return refused(name, line, tables.get(index).copied(), reason);
        }
        failure::of_write(&error, shown)
    })?;
    done.added += imported.added;
    done.present += imported.present;
    done.batches += 1;
    done.certified += u64::from(imported.receipts.iter().all(|receipt| receipt.operations().is_some()));
    Ok(())
}

/// Whether the store has a row of that key that says something else. Numbers of prompts only grow.
fn contradicts(history: &dyn History, row: &StoredRow) -> Result<bool, headwater_store::ReadError> {
    let (Some(key), false) = (row.key(), row.table == Table::PromptSeq) else { return Ok(false) };
    let mut contradicts = false;
    let mut look = |stored: StoredRow| {
        // A server keeps times in one spelling and to the microsecond.
        contradicts =
            !stored.agrees_with(row) && row.typed().map_or(true, |typed| !stored.agrees_with(&typed));
        ControlFlow::Break(())
    };
    history.each_row(row.table, Owner::Key(key), &mut look)?;
    Ok(contradicts)
}

const fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::BrokenText(bytes) | Value::Blob(bytes) => bytes.len(),
        Value::Absent | Value::Null | Value::Integer(_) | Value::Real(_) => 8,
    }
}

fn of_line(name: &str, line: u64, error: LineError) -> Failure {
    let (code, hint) = if matches!(error, LineError::Newer(_)) {
        ("newer-format", "use a newer version of this program; nothing was changed")
    } else {
        ("malformed", "name a file that `headwater conversation export` wrote; nothing was changed")
    };
    Failure::new(Status::Damaged, code, format_args!("{name}, line {line}: {error}")).with_hint(hint)
}

fn of_row(name: &str, placed: &Placed, reason: BadMutation) -> Failure {
    let hint = if reason == BadMutation::DuplicateId {
        "import into another store; nothing was changed"
    } else {
        "import into a store in a SQLite file, which keeps it; nothing was changed"
    };
    refused(name, placed.line, Some(placed.row.table), reason).with_hint(hint)
}

fn refused(name: &str, line: u64, table: Option<Table>, reason: BadMutation) -> Failure {
    let (status, code, _) = failure::explain(reason);
    let table = table.map_or("row", Table::name);
    let words = if reason == BadMutation::DuplicateId {
        "the store has this id, with other values".to_owned()
    } else {
        reason.to_string()
    };
    let message = format_args!("{name}, line {line} ({table}): {words}");
    Failure::new(status, code, message).with_hint(
        "its transaction was not written, earlier ones were; the same command again leaves these alone",
    )
}
