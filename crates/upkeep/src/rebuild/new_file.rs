//! The new database file: settings and tables first, indexes and the rest after the rows.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;

use crate::rebuild::connect;
use crate::rebuild::error::{Doing, RebuildErrorKind};
use crate::rebuild::shape::{Entry, entries, quoted};

/// Page cache while rows are written, in KiB. More gains nothing: dirty pages are written one by one either way (MEASURED).
pub(crate) const CACHE_KIB: i64 = 12 * 1024;

/// Where the header says how pages are written: both bytes are 2 for a write-ahead log, 1 for a rollback journal.
const JOURNAL_OFFSET: u64 = 18;

/// The name of a table on its way to a name that only SQLite may create.
const STAND_IN: &str = "headwater_stand_in_";

/// A connection that fills the new file.
pub(crate) fn open(path: &Path) -> Result<Connection, RebuildErrorKind> {
    let configure = || -> rusqlite::Result<Connection> {
        let db = connect::private(path)?;
        db.pragma_update(None, "foreign_keys", false)?;
        db.pragma_update(None, "ignore_check_constraints", true)?;
        db.pragma_update(None, "cache_size", -CACHE_KIB)?;
        db.pragma_update(None, "mmap_size", 0)?;
        db.pragma_update(None, "temp_store", "FILE")?;
        db.set_prepared_statement_cache_capacity(0);
        Ok(db)
    };
    configure().doing("opening the new file")
}

/// Gives the empty file at `path` the settings and tables of `source`.
pub(crate) fn create(source: &Connection, path: &Path) -> Result<(), RebuildErrorKind> {
    let entries = entries(source)?;
    let db = connect::private(path).doing("opening the new file")?;
    copy_settings(source, &db)?;
    db.execute_batch("BEGIN").doing("creating the new file")?;
    let tables = entries.iter().filter(|entry| entry.is_table_with_pages());
    let (internal, ordinary): (Vec<&Entry>, Vec<&Entry>) = tables.partition(|entry| entry.is_internal());
    for table in ordinary {
        db.execute_batch(&table.sql).doing("creating a table")?;
    }
    for table in internal {
        create_internal(&db, table)?;
    }
    db.execute_batch("COMMIT").doing("creating the new file")
}

/// Settings that stand in the header. `page_size`, `auto_vacuum` and `encoding` hold only if set before the first table.
fn copy_settings(source: &Connection, db: &Connection) -> Result<(), RebuildErrorKind> {
    let encoding: String =
        source.query_row("PRAGMA encoding", [], |row| row.get(0)).doing("reading the settings")?;
    if encoding != "UTF-8" {
        return Err(RebuildErrorKind::Unsupported(format!("text is stored as {encoding}")));
    }
    for setting in ["page_size", "auto_vacuum", "application_id", "user_version"] {
        let value: i64 = source
            .query_row(&format!("PRAGMA {setting}"), [], |row| row.get(0))
            .doing("reading the settings")?;
        db.pragma_update(None, setting, value).doing("setting up the new file")?;
    }
    Ok(())
}

/// Tables whose names SQLite keeps for itself: `sqlite_sequence` comes with any AUTOINCREMENT table, others are created under
/// another name and renamed in the schema.
fn create_internal(db: &Connection, table: &Entry) -> Result<(), RebuildErrorKind> {
    if table.name == "sqlite_sequence" {
        let sql = format!(
            "CREATE TABLE {STAND_IN}sequence (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE {STAND_IN}sequence"
        );
        let exists: bool = db
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'", [], |row| {
                row.get(0)
            })
            .doing("creating a table")?;
        return if exists { Ok(()) } else { db.execute_batch(&sql).doing("creating a table") };
    }
    let stand_in = format!("{STAND_IN}{}", table.name);
    let Some(columns) = table.sql.find('(').map(|start| &table.sql[start..]) else {
        return Err(RebuildErrorKind::Unsupported(format!("table {} has no columns", table.name)));
    };
    let create = || -> rusqlite::Result<()> {
        db.execute_batch(&format!(
            "CREATE TABLE {} {columns}; PRAGMA writable_schema = ON",
            quoted(&stand_in)
        ))?;
        db.execute(
            "UPDATE sqlite_schema SET name = ?1, tbl_name = ?1, sql = ?2 WHERE name = ?3",
            [&table.name, &table.sql, &stand_in],
        )?;
        db.execute_batch("PRAGMA writable_schema = OFF")
    };
    create().doing("creating a table")
}

/// Creates the plain indexes of `tables` while the tables are empty: where whole records are moved, SQLite moves the entries of such an
/// index along in their order, which is faster than to sort them anew.
pub(crate) fn create_plain_indexes(
    source: &Connection,
    path: &Path,
    tables: &[&str],
) -> Result<(), RebuildErrorKind> {
    let db = open(path)?;
    for table in tables {
        for index in plain_indexes(source, table)? {
            db.execute_batch(&index.sql).doing("creating an index")?;
        }
    }
    db.close().map_err(|(_, error)| error).doing("closing the new file")
}

/// An index that a statement made of columns alone and for all rows.
pub(crate) struct PlainIndex {
    pub(crate) name: String,
    sql: String,
}

/// The plain indexes of `table`.
pub(crate) fn plain_indexes(source: &Connection, table: &str) -> Result<Vec<PlainIndex>, RebuildErrorKind> {
    let mut statement = source
        .prepare_cached(
            "SELECT s.name, s.sql FROM pragma_index_list(?1) i \
             JOIN sqlite_schema s ON s.type = 'index' AND s.name = i.name \
             WHERE i.origin = 'c' AND i.partial = 0 \
             AND NOT EXISTS (SELECT 1 FROM pragma_index_info(i.name) WHERE cid = -2)",
        )
        .doing("reading the schema")?;
    let indexes = statement.query_map([table], |row| Ok(PlainIndex { name: row.get(0)?, sql: row.get(1)? }));
    indexes.and_then(Iterator::collect).doing("reading the schema")
}

/// Builds the other indexes over the loaded rows, then adds what has no pages: views, triggers and virtual tables (as SQLite's own VACUUM
/// does, whatever module they need).
pub(crate) fn finish_schema(db: &Connection, source: &[Entry]) -> Result<(), RebuildErrorKind> {
    let existing = entries(db)?;
    for index in source.iter().filter(|entry| entry.kind == "index") {
        if !existing.iter().any(|entry| entry.kind == "index" && entry.name == index.name) {
            db.execute_batch(&index.sql).doing("building an index")?;
        }
    }
    let add = || -> rusqlite::Result<()> {
        db.execute_batch("PRAGMA writable_schema = ON")?;
        for entry in source.iter().filter(|entry| !entry.has_pages) {
            db.execute(
                "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (?1, ?2, ?3, 0, ?4)",
                [&entry.kind, &entry.name, &entry.table, &entry.sql],
            )?;
        }
        db.execute_batch("PRAGMA writable_schema = OFF")
    };
    add().doing("adding views and triggers")
}

/// Writes the journal mode into the header. No connection has the file open.
pub(crate) fn set_journal_mode(file: &File, is_wal: bool) -> std::io::Result<()> {
    file.write_all_at(if is_wal { &[2, 2] } else { &[1, 1] }, JOURNAL_OFFSET)
}
