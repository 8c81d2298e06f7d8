//! Opening connections, and every pragma of them.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::options::{SqliteOptions, Synchronous};

/// Prepared statements that a connection keeps: all that the store has.
const STATEMENTS: usize = 64;

/// Pages of the log after which it is moved into the file: 16 MiB of those that SQLite makes by itself. A page that is written again meanwhile is
/// moved once, and the disk is waited for less often.
const LOG_PAGES: i64 = 4096;

/// The connection that writes. Creates the file where there is none.
pub(crate) fn open_writer(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = open(path, flags, options)?;
    // Answers with the mode that is in force, which on a read-only file stays another.
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    let synchronous = match options.synchronous {
        Synchronous::Normal => "NORMAL",
        Synchronous::Full => "FULL",
    };
    db.pragma_update(None, "synchronous", synchronous)?;
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    Ok(db)
}

/// Has SQLite finish what an interrupted write to the file at `path` left, as any program that opens it for writing does.
pub(crate) fn recover(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = open(path, flags, &SqliteOptions::default())?;
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// A connection that reads.
pub(crate) fn open_reader(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let db = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX, options)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

fn open(path: &Path, flags: OpenFlags, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    #[expect(clippy::disallowed_methods, reason = "the one place of this crate that opens a connection")]
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(options.busy_timeout)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(db)
}
