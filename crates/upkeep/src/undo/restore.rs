//! Restoring the units of an archive, newest first.

use std::path::Path;

use headwater_model::UnixMillis;
use headwater_prune::Class;
use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Connection, ErrorCode, OptionalExtension, ToSql};
use sha2::{Digest, Sha256};

use super::archive::{ArchiveError, Unit};
use super::reader::{ArchiveReader, FrameReader};
use super::report::{LeftAlone, UndoError, UndoErrorKind, UndoPreview, UndoReport};
use super::row::{Change, Record, Restored};
use crate::fence::{Asked, Clock, Fence, FenceOptions, Patience, Refusal, ServerProbe, Subject};
use crate::lock::{self, Held, LockPolicy, ShortLocks};
use crate::observer::{Observer, Progress, Unit as Counted};
use crate::prune;
use crate::schema::Schema;
use crate::state::{DatabaseIdentity, DatabaseKey, StateFile, hex};
use crate::{ReadDatabase, WriteDatabase};

/// What a caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct UndoOptions {
    /// Whether an archive whose last frame is unfinished is used up to there. What that frame speaks of was never removed.
    pub accept_torn: bool,
    /// What the fence lets pass.
    pub fence: FenceOptions,
    /// How long locks are held and waited for.
    pub locks: LockPolicy,
}

impl Default for UndoOptions {
    fn default() -> Self {
        Self { accept_torn: false, fence: FenceOptions::default(), locks: LockPolicy::BATCH }
    }
}

/// A step that an undo has completed, for each unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The archive was verified whole (once).
    Verified,
    /// Servers and holders were asked; the lock is not taken.
    Asked,
    /// The rows stand in the open transaction.
    Restored,
    /// The transaction is committed.
    Committed,
    /// The committed transactions of a few units are on disk; their receipts in the state file are not removed.
    Durable,
    /// Those receipts are removed.
    Forgotten,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 6] =
        [Self::Verified, Self::Asked, Self::Restored, Self::Committed, Self::Durable, Self::Forgotten];

    /// The name that an observer is told.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verified => "undo-verified",
            Self::Asked => "undo-asked",
            Self::Restored => "undo-restored",
            Self::Committed => "undo-committed",
            Self::Durable => "undo-durable",
            Self::Forgotten => "undo-forgotten",
        }
    }
}

/// Verifies `archive` whole and counts what it holds. Reads only.
///
/// # Errors
/// As [`run`], and where the caller cancels.
pub fn preview(
    database: &ReadDatabase,
    archive: &Path,
    accept_torn: bool,
    observer: &dyn Observer,
) -> Result<UndoPreview, UndoError> {
    let identity = DatabaseIdentity::read(database.connection(), database.file())?;
    let fail = |kind| ArchiveError { path: archive.to_owned(), kind };
    let reader = ArchiveReader::open(archive, &identity, accept_torn).map_err(fail)?;
    let mut preview = UndoPreview { had_torn_end: reader.is_torn, ..UndoPreview::default() };
    let total = Some(reader.offsets.len() as u64);
    for offset in &reader.offsets {
        if observer.is_cancelled() {
            return Err(UndoErrorKind::Cancelled.into());
        }
        let mut frame = reader.frame(*offset).map_err(fail)?;
        let mut rows = 0;
        while frame.skip().map_err(fail)? {
            rows += 1;
        }
        preview.units += 1;
        preview.rows += rows;
        *preview.classes.entry(frame.unit.class).or_default() += rows;
        let done = preview.units;
        observer.progress(Progress { phase: "reading the archive", done, total, unit: Counted::Rows });
    }
    Ok(preview)
}

/// Restores what the prunes of `archive` removed from `database`, each unit in a transaction of its own, and removes its receipt with
/// it. Doing it again restores nothing more.
///
/// # Errors
/// [`UndoError`] where the archive is damaged, unfinished, or of another database (nothing is restored then), and where the lock
/// cannot be had.
pub fn run(
    database: &WriteDatabase,
    state: &mut StateFile,
    archive: &Path,
    probe: &dyn ServerProbe,
    options: UndoOptions,
    now: UnixMillis,
    observer: &dyn Observer,
) -> Result<UndoReport, UndoError> {
    let connection = database.connection();
    let identity = DatabaseIdentity::read(connection, database.file())?;
    let fail = |kind| ArchiveError { path: archive.to_owned(), kind };
    let reader = ArchiveReader::open(archive, &identity, options.accept_torn).map_err(fail)?;
    observer.reached(Step::Verified.name());
    let mut undo = Undo {
        fence: Fence::new(connection, options.fence, probe, Clock::starting_at(now))?,
        locks: ShortLocks::new(database, options.locks)?,
        patience: Patience::default(),
        archive,
        observer,
    };
    let total = reader.offsets.len() as u64;
    let mut restored = Vec::new();
    let mut report = UndoReport { units: total, had_torn_end: reader.is_torn, ..UndoReport::default() };
    let key = state.database(&identity)?;
    for (offset, done) in reader.offsets.iter().rev().zip(0..) {
        if observer.is_cancelled() {
            report.is_cancelled = true;
            break;
        }
        restored.extend(undo.unit(&reader, *offset, &mut report)?);
        if restored.len() >= FORGOTTEN_TOGETHER {
            undo.forget(state, key, &mut restored)?;
        }
        observer.progress(Progress { phase: "restoring", done, total: Some(total), unit: Counted::Rows });
    }
    undo.forget(state, key, &mut restored)?;
    report.locks = undo.locks.report();
    Ok(report)
}

/// Units whose receipts are removed from the state file together: each time waits for the disk twice.
const FORGOTTEN_TOGETHER: usize = 64;

struct Undo<'a> {
    fence: Fence<'a>,
    locks: ShortLocks<'a>,
    patience: Patience,
    archive: &'a Path,
    observer: &'a dyn Observer,
}

/// What one unit came to.
#[derive(Default)]
struct Outcome {
    restored: u64,
    left: Vec<LeftAlone>,
}

impl Undo<'_> {
    /// Waits until what was restored is on disk, then removes its receipts from the state file: a receipt must not go before its change
    /// is back for good. Leaves `restored` empty.
    fn forget(
        &self,
        state: &mut StateFile,
        key: DatabaseKey,
        restored: &mut Vec<String>,
    ) -> Result<(), UndoError> {
        self.locks.make_durable()?;
        self.observer.reached(Step::Durable.name());
        state.forget(key, restored.iter().map(String::as_str))?;
        self.observer.reached(Step::Forgotten.name());
        restored.clear();
        Ok(())
    }

    /// Restores one unit. Returns the key of the receipt that is to be removed from the state file.
    fn unit(
        &mut self,
        reader: &ArchiveReader,
        offset: u64,
        report: &mut UndoReport,
    ) -> Result<Option<String>, UndoError> {
        let unit = self.open(reader, offset)?.unit;
        let outcome = loop {
            self.locks.prepare()?;
            let asked = match self.fence.ask(&unit.place) {
                Ok(asked) => asked,
                Err(reason) => break self.leave(reader, offset, Refusal::Kept(reason).into())?,
            };
            self.observer.reached(Step::Asked.name());
            match self.transaction(reader, offset, &unit, asked)? {
                Err(LeftAlone::AskedTooLongAgo) if self.patience.may_ask_again() => {}
                Err(left) => break self.leave(reader, offset, left)?,
                Ok(outcome) => {
                    self.patience.restore();
                    break outcome;
                }
            }
        };
        for left in outcome.left {
            *report.rows_left.entry(left).or_default() += 1;
        }
        report.rows_restored += outcome.restored;
        if outcome.restored == 0 {
            return Ok(None);
        }
        report.units_restored += 1;
        self.observer.reached(Step::Committed.name());
        Ok(unit.receipt)
    }

    fn transaction(
        &mut self,
        reader: &ArchiveReader,
        offset: u64,
        unit: &Unit,
        asked: Asked,
    ) -> Result<Result<Outcome, LeftAlone>, UndoError> {
        let (fence, archive, observer) = (&mut self.fence, self.archive, self.observer);
        let ran = self.locks.run(|held| {
            if let Some(left) = refusal(fence, held, unit, asked)? {
                return Ok(lock::Step::Rollback(Err(left)));
            }
            let fail = |kind| ArchiveError { path: archive.to_owned(), kind };
            let mut frame = reader.frame(offset).map_err(fail)?;
            let outcome = restore(held.connection(), fence.schema(), unit, &mut frame, archive)?;
            observer.reached(Step::Restored.name());
            Ok::<_, UndoErrorKind>(match outcome {
                Ok(outcome) if outcome.restored > 0 => lock::Step::Commit(Ok(outcome)),
                other => lock::Step::Rollback(other),
            })
        })?;
        Ok(ran)
    }

    /// Counts the rows of a unit that stays as it is.
    fn leave(&self, reader: &ArchiveReader, offset: u64, left: LeftAlone) -> Result<Outcome, UndoError> {
        let mut frame = self.open(reader, offset)?;
        let fail = |kind| ArchiveError { path: self.archive.to_owned(), kind };
        let mut outcome = Outcome::default();
        while frame.skip().map_err(fail)? {
            outcome.left.push(left);
        }
        Ok(outcome)
    }

    fn open<'r>(&self, reader: &'r ArchiveReader, offset: u64) -> Result<FrameReader<'r>, ArchiveError> {
        reader.frame(offset).map_err(|kind| ArchiveError { path: self.archive.to_owned(), kind })
    }
}

/// Why the unit may not be restored at this moment. A session that was removed whole has no row that could forbid it.
fn refusal(
    fence: &mut Fence<'_>,
    held: &Held<'_>,
    unit: &Unit,
    asked: Asked,
) -> rusqlite::Result<Option<LeftAlone>> {
    let subject = if matches!(unit.class, Class::Events | Class::SupersededEvents) {
        Subject::Events
    } else {
        Subject::Content
    };
    let verdict = if is_whole(unit.class) {
        fence.check_absent(held, &unit.place)?
    } else {
        fence.check(held, &unit.place, asked, subject)?
    };
    if let Err(refusal) = verdict {
        return Ok(Some(refusal.into()));
    }
    Ok(None)
}

/// Whether what is stored of the pruned message is what the prune left; `None` where the message is gone.
fn is_unchanged(connection: &Connection, unit: &Unit) -> rusqlite::Result<Option<bool>> {
    let Some(guard) = &unit.message else { return Ok(Some(true)) };
    let stored = prune::stored_digest(connection, unit.place.storage, &guard.id)?;
    Ok(stored.map(|digest| hex(&digest) == guard.after))
}

/// Whether rows of `class` are removed together with the session they belong to.
fn is_whole(class: Class) -> bool {
    matches!(class, Class::Sessions | Class::Leftover)
}

/// Whether the unit is restored whole or not at all.
fn is_atomic(unit: &Unit) -> bool {
    unit.message.is_some() || is_whole(unit.class)
}

/// Puts the rows of a unit back. The inner error is why a unit that is restored whole stays as it is.
fn restore(
    connection: &Connection,
    schema: &Schema,
    unit: &Unit,
    frame: &mut FrameReader<'_>,
    archive: &Path,
) -> Result<Result<Outcome, LeftAlone>, UndoErrorKind> {
    let fail = |kind| ArchiveError { path: archive.to_owned(), kind };
    let Some(is_unchanged) = is_unchanged(connection, unit)? else { return Ok(Err(LeftAlone::ParentGone)) };
    let mut outcome = Outcome::default();
    let mut back = Vec::new();
    while let Some(record) = frame.next().map_err(fail)? {
        match put(connection, schema, &record)? {
            Ok(rowid) => {
                outcome.restored += 1;
                back.push((table_of(&record).to_owned(), rowid));
            }
            Err(left) if is_atomic(unit) => return Ok(Err(left)),
            Err(left) => outcome.left.push(left),
        }
    }
    // Asked last: where the rows are still there, nothing was removed, and that is the better answer.
    if !is_unchanged {
        return Ok(Err(LeftAlone::Changed));
    }
    // Rows of a unit may be each other's parents, whatever their order.
    for (table, rowid) in &back {
        if !has_parent(connection, schema, table, *rowid)? {
            return Ok(Err(LeftAlone::ParentGone));
        }
    }
    if outcome.restored > 0
        && let Some(receipt) = &unit.receipt
        && schema.has("kv", "key")
    {
        connection.execute("DELETE FROM kv WHERE key = ?1", [prune::kv_key(receipt)])?;
    }
    Ok(Ok(outcome))
}

fn table_of(record: &Record) -> &str {
    match &record.change {
        Change::Deleted { table, .. } | Change::Rewritten { table, .. } => table,
    }
}

fn put(
    connection: &Connection,
    schema: &Schema,
    record: &Record,
) -> rusqlite::Result<Result<i64, LeftAlone>> {
    let table = table_of(record);
    if !record.columns.iter().all(|column| schema.has(table, &column.name)) {
        return Ok(Err(LeftAlone::SchemaChanged));
    }
    match &record.change {
        Change::Deleted { rowid, .. } => insert(connection, table, *rowid, &record.columns),
        Change::Rewritten { rowid, after, .. } => rewrite(connection, table, *rowid, after, &record.columns),
    }
}

/// Inserts a row under its old rowid where that is free. A row with the same key is there already.
fn insert(
    connection: &Connection,
    table: &str,
    rowid: i64,
    columns: &[Restored],
) -> rusqlite::Result<Result<i64, LeftAlone>> {
    let is_taken =
        connection.prepare_cached(&format!("SELECT 1 FROM \"{table}\" WHERE rowid = ?1"))?.exists([rowid])?;
    let mut names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let mut values: Vec<String> =
        columns.iter().zip(1..).map(|(column, at)| placeholder(column, at)).collect();
    let mut parameters: Vec<&dyn ToSql> = columns.iter().map(|column| column as &dyn ToSql).collect();
    if !is_taken {
        names.push("rowid".to_owned());
        values.push(format!("?{}", columns.len() + 1));
        parameters.push(&rowid);
    }
    let sql = format!("INSERT INTO \"{table}\" ({}) VALUES ({})", names.join(", "), values.join(", "));
    match connection.prepare_cached(&sql)?.execute(parameters.as_slice()) {
        Ok(_) => Ok(Ok(connection.last_insert_rowid())),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Ok(Err(LeftAlone::StillThere))
        }
        Err(error) => Err(error),
    }
}

/// Puts the old data back where the row has the data that the prune wrote.
fn rewrite(
    connection: &Connection,
    table: &str,
    rowid: i64,
    after: &str,
    columns: &[Restored],
) -> rusqlite::Result<Result<i64, LeftAlone>> {
    let find = |name: &str| columns.iter().find(|column| column.name == name);
    let (Some(id), Some(before)) = (find("id"), find("data")) else {
        return Ok(Err(LeftAlone::SchemaChanged));
    };
    let sql =
        format!("SELECT CAST(data AS BLOB) FROM \"{table}\" WHERE rowid = ?1 AND id = CAST(?2 AS TEXT)");
    let stored: Option<Vec<u8>> =
        connection.prepare_cached(&sql)?.query_row((rowid, id), |row| row.get(0)).optional()?;
    let Some(stored) = stored else { return Ok(Err(LeftAlone::ParentGone)) };
    if hex(&Sha256::digest(&stored)) != after {
        let is_before = before.value == Value::Blob(stored);
        return Ok(Err(if is_before { LeftAlone::StillThere } else { LeftAlone::Changed }));
    }
    let sql = format!(
        "UPDATE \"{table}\" SET data = CAST(?1 AS TEXT) WHERE rowid = ?2 AND id = CAST(?3 AS TEXT) AND data = CAST(?4 AS TEXT)"
    );
    let changed = connection.prepare_cached(&sql)?.execute((before, rowid, id, &stored))?;
    Ok(if changed == 1 { Ok(rowid) } else { Err(LeftAlone::Changed) })
}

fn placeholder(column: &Restored, at: usize) -> String {
    if column.is_text { format!("CAST(?{at} AS TEXT)") } else { format!("?{at}") }
}

impl ToSql for Restored {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.value.to_sql()
    }
}

/// Whether the row that the restored one belongs to exists (facts A2, B2). Tables that belong to nothing here need no parent.
fn has_parent(connection: &Connection, schema: &Schema, table: &str, rowid: i64) -> rusqlite::Result<bool> {
    let (column, parents): (&str, &[(&str, &str)]) = match table {
        "part" => ("message_id", &[("message", "id")]),
        "event" => ("aggregate_id", &[("event_sequence", "aggregate_id")]),
        "message" => ("session_id", &[("session", "id")]),
        "session" | "session_v2" => ("project_id", &[("project", "id")]),
        _ if schema.has(table, "session_id") => ("session_id", &[("session", "id"), ("session_v2", "id")]),
        _ => return Ok(true),
    };
    for (parent, key) in parents.iter().filter(|(parent, key)| schema.has(parent, key)) {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM \"{table}\" c JOIN \"{parent}\" p ON p.\"{key}\" = c.\"{column}\" WHERE c.rowid = ?1)"
        );
        if connection.prepare_cached(&sql)?.query_row([rowid], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}
