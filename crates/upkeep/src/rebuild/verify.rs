//! Proving that the new file holds exactly what survives, before it takes over.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rusqlite::{Connection, ErrorCode};

use crate::observer::Observer;
use crate::rebuild::connect;
use crate::rebuild::copy::CopiedTable;
use crate::rebuild::encoded::{Digest, Digester, encode};
use crate::rebuild::error::{Doing, RebuildErrorKind};
use crate::rebuild::rewrite::Verbatim;
use crate::rebuild::rows::{Cell, RowSink, Survivors, TableReader};
use crate::rebuild::shape::{TableShape, quoted};
use crate::rebuild::watch::stoppable;

/// Settings that must be the same in both files.
const SETTINGS: [&str; 5] = ["page_size", "auto_vacuum", "application_id", "user_version", "encoding"];

/// Compares the file at `new_path` with what was copied from `source`, and checks it by itself. The work on the new file is split over two
/// threads. It reads everything once more, so the caller may stop it at any time.
pub(crate) fn verify(
    source: &Connection,
    new_path: &Path,
    tables: &mut [CopiedTable],
    observer: &dyn Observer,
) -> Result<(), RebuildErrorKind> {
    let open = || connect::resting(new_path).doing("opening the new file");
    let new = [open()?, open()?, open()?];
    let interrupts = [source, &new[0], &new[1], &new[2]].map(Connection::get_interrupt_handle);
    let expected = stoppable(observer, &interrupts, || {
        compare(source, new, tables, observer).map_err(|kind| blame(source, kind))
    })?;
    for (table, digest) in tables.iter_mut().zip(expected) {
        table.digest = Some(digest);
    }
    Ok(())
}

/// What a damaged source made of the new file is no fault of the rebuild. A source that cannot be checked is not said to be damaged.
fn blame(source: &Connection, kind: RebuildErrorKind) -> RebuildErrorKind {
    let is_fault = matches!(kind, RebuildErrorKind::Verification(_));
    if is_fault && is_damaged(source) { RebuildErrorKind::Damaged } else { kind }
}

/// Whether SQLite says that the file is damaged, as the answer of its check or as the error that ends it.
fn is_damaged(db: &Connection) -> bool {
    match is_intact(db).doing("checking the database") {
        Ok(is_intact) => !is_intact,
        Err(kind) => matches!(kind, RebuildErrorKind::Damaged),
    }
}

/// Whether SQLite finds nothing wrong in the whole file.
pub(crate) fn is_intact(db: &Connection) -> rusqlite::Result<bool> {
    let answer: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok(answer == "ok")
}

/// The digests that both files have. Each of the three jobs has a connection to the new file of its own.
fn compare(
    source: &Connection,
    [new, first_new, second_new]: [Connection; 3],
    tables: &[CopiedTable],
    observer: &dyn Observer,
) -> Result<Vec<Digest>, RebuildErrorKind> {
    let digests = Mutex::new(vec![None; tables.len()]);
    let queue = Queue { tables, observer, next: AtomicUsize::new(0), digests };
    thread::scope(|scope| {
        let work = &queue;
        let second = scope.spawn(move || work.work(&second_new));
        let expected = expect(source, &new, tables, observer);
        let first = queue.work(&first_new);
        let second = second.join().unwrap_or(Err(failed("a verifying thread died")));
        // A table that is missing also fails whoever reads it; the comparison says which.
        let expected = expected?;
        first.and(second)?;
        let digests = queue.digests.lock().map_err(|_| failed("a verifying thread died"))?;
        for ((table, expected), found) in tables.iter().zip(&expected).zip(digests.iter()) {
            if Some(*expected) != *found {
                return Err(failed(format!("the rows of table {} differ", table.shape.name)));
            }
        }
        Ok(expected)
    })
}

/// Between statements, where an interrupt reaches nothing.
fn ensure_wanted(observer: &dyn Observer) -> Result<(), RebuildErrorKind> {
    if observer.is_cancelled() { Err(RebuildErrorKind::Cancelled) } else { Ok(()) }
}

fn failed(what: impl Into<String>) -> RebuildErrorKind {
    RebuildErrorKind::Verification(what.into())
}

/// What the tables must hold, and everything that needs both files. Only one thread may use the connection that holds the lock.
fn expect(
    source: &Connection,
    new: &Connection,
    tables: &[CopiedTable],
    observer: &dyn Observer,
) -> Result<Vec<Digest>, RebuildErrorKind> {
    compare_schemas(source, new)?;
    ensure_every_table(source, tables)?;
    let mut digests = Vec::with_capacity(tables.len());
    for table in tables {
        ensure_wanted(observer)?;
        let digest = match table.digest {
            Some(digest) => digest,
            None => digest_of(source, &table.shape)?,
        };
        ensure_count(source, table, digest)?;
        digests.push(digest);
    }
    for table in tables {
        ensure_wanted(observer)?;
        ensure_keys_no_worse(source, new, &table.shape.name)?;
    }
    Ok(digests)
}

/// One row of `sqlite_schema`: type, name, table, SQL, and whether pages hang on it.
type SchemaRow = (String, String, String, Option<String>, bool);

/// Every row of `sqlite_schema`, sorted. Read here anew: what copies the schema must not be what says that it is complete. The names of
/// automatic indexes are SQLite's own and count only by their number.
fn schema_rows(db: &Connection) -> Result<Vec<SchemaRow>, RebuildErrorKind> {
    let mut statement = db
        .prepare(
            "SELECT type, iif(sql IS NULL, '', name) AS name, tbl_name, sql, ifnull(rootpage, 0) > 0 \
             FROM sqlite_schema ORDER BY 1, 2, 3, 4",
        )
        .doing("comparing the schemas")?;
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .and_then(Iterator::collect);
    rows.doing("comparing the schemas")
}

fn compare_schemas(source: &Connection, new: &Connection) -> Result<(), RebuildErrorKind> {
    let (old_rows, new_rows) = (schema_rows(source)?, schema_rows(new)?);
    if old_rows != new_rows {
        let lost = old_rows.iter().find(|row| !new_rows.contains(row));
        let other = lost.or_else(|| new_rows.iter().find(|row| !old_rows.contains(row)));
        return Err(failed(match other {
            Some((kind, name, table, ..)) => format!("the schemas differ: {kind} {name} of table {table}"),
            None => "the schemas differ".to_owned(),
        }));
    }
    for setting in SETTINGS {
        let read = |db: &Connection| {
            db.query_row(&format!("SELECT CAST({setting} AS TEXT) FROM pragma_{setting}"), [], |row| {
                row.get::<_, String>(0)
            })
            .doing("comparing settings")
        };
        if read(source)? != read(new)? {
            return Err(failed(format!("the setting {setting} differs")));
        }
    }
    Ok(())
}

/// Every table with rows of its own is among those that are compared: a table that the copier passed over is in no list of its.
fn ensure_every_table(source: &Connection, tables: &[CopiedTable]) -> Result<(), RebuildErrorKind> {
    for (kind, name, _, _, has_pages) in schema_rows(source)? {
        if kind == "table" && has_pages && !tables.iter().any(|table| table.shape.name == name) {
            return Err(failed(format!("table {name} was not copied")));
        }
    }
    Ok(())
}

/// The rows of a table number as many as were there less those that go: counted by SQLite, not by the code that skipped them.
fn ensure_count(source: &Connection, table: &CopiedTable, digest: Digest) -> Result<(), RebuildErrorKind> {
    let sql = format!("SELECT count(*) FROM {}", table.shape.quoted());
    let rows: i64 = source.query_row(&sql, [], |row| row.get(0)).doing("counting rows")?;
    if rows.cast_unsigned().checked_sub(table.survivors.dropped_count()) == Some(digest.rows) {
        Ok(())
    } else {
        Err(failed(format!("the number of rows of table {} is not as planned", table.shape.name)))
    }
}

/// One row of `foreign_key_check`: rowid, parent, which key.
type Violation = (Option<i64>, String, i64);

/// Every broken reference of the new file must be broken in the old one too. Both lists come in the same order, so neither is held.
fn ensure_keys_no_worse(source: &Connection, new: &Connection, table: &str) -> Result<(), RebuildErrorKind> {
    let sql = format!("PRAGMA foreign_key_check({})", quoted(table));
    let mut check = new.prepare(&sql).doing("checking references")?;
    let mut found = check.query_map([], violation).doing("checking references")?;
    let Some(mut next) = found.next() else { return Ok(()) };
    let mut old_check = source.prepare(&sql).doing("checking references")?;
    let mut old = old_check.query_map([], violation).doing("checking references")?;
    loop {
        match next {
            Err(error) if is_interrupt(&error) => return Err(error).doing("checking references"),
            // A key that cannot be checked at all (its parent lacks the index) could not be checked before either.
            Err(error) => {
                let had_none = !has(&mut old, Result::is_err)?;
                return if had_none { Err(error).doing("checking references") } else { Ok(()) };
            }
            Ok(worse) => {
                if !has(&mut old, |entry| entry.as_ref().is_ok_and(|entry| *entry == worse))? {
                    return Err(failed(format!("rows of table {table} would lose what they refer to")));
                }
            }
        }
        next = match found.next() {
            Some(entry) => entry,
            None => return Ok(()),
        };
    }
}

/// Whether one of the next entries is as wanted. An interrupt is no answer.
fn has(
    entries: &mut impl Iterator<Item = rusqlite::Result<Violation>>,
    is_wanted: impl Fn(&rusqlite::Result<Violation>) -> bool,
) -> Result<bool, RebuildErrorKind> {
    for entry in entries {
        match entry {
            Err(error) if is_interrupt(&error) => return Err(error).doing("checking references"),
            entry if is_wanted(&entry) => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

fn is_interrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

fn violation(row: &rusqlite::Row<'_>) -> rusqlite::Result<Violation> {
    Ok((row.get(1)?, row.get(2)?, row.get(3)?))
}

/// The digest of all rows of a table.
pub(crate) fn digest_of(db: &Connection, shape: &TableShape) -> Result<Digest, RebuildErrorKind> {
    let everything = Survivors::default();
    let mut sink = DigestSink::default();
    TableReader::new(db, shape, &everything, &Verbatim)?.read(&mut sink)?;
    Ok(sink.digester.finish())
}

/// Takes the digest of rows as they are read.
#[derive(Default)]
struct DigestSink {
    digester: Digester,
    row: Vec<u8>,
}

impl RowSink for DigestSink {
    fn row(&mut self, rowid: Option<i64>, cells: &[Cell<'_>]) -> Result<(), RebuildErrorKind> {
        self.row.clear();
        encode(rowid, cells, &mut self.row);
        self.digester.add(1, &self.row);
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8]) -> Result<(), RebuildErrorKind> {
        self.digester.add(0, bytes);
        Ok(())
    }
}

/// What is to be done with the new file alone: for each table its digest, then its integrity; then the schema's.
struct Queue<'a> {
    tables: &'a [CopiedTable],
    observer: &'a dyn Observer,
    next: AtomicUsize,
    digests: Mutex<Vec<Option<Digest>>>,
}

impl Queue<'_> {
    fn work(&self, new: &Connection) -> Result<(), RebuildErrorKind> {
        let tables = self.tables.len();
        loop {
            ensure_wanted(self.observer)?;
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task < tables {
                let digest = digest_of(new, &self.tables[task].shape)?;
                let mut digests = self.digests.lock().map_err(|_| failed("a verifying thread died"))?;
                digests[task] = Some(digest);
            } else if task < 2 * tables {
                ensure_integrity(new, &self.tables[task - tables].shape.name)?;
            } else if task == 2 * tables {
                ensure_integrity(new, "sqlite_schema")?;
            } else {
                return Ok(());
            }
        }
    }
}

fn ensure_integrity(new: &Connection, table: &str) -> Result<(), RebuildErrorKind> {
    let sql = format!("PRAGMA integrity_check({})", quoted(table));
    let answer: String = new.query_row(&sql, [], |row| row.get(0)).doing("checking the new file")?;
    if answer == "ok" { Ok(()) } else { Err(failed(format!("table {table} fails integrity_check"))) }
}
