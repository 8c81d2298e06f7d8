//! Connections of an offline rewrite: to the locked source, to the new file while it is private, and to a file that rests.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql};

use crate::OpenErrorKind;

/// A connection to the source, before its lock is taken: no waiting, and `locking_mode=EXCLUSIVE` before anything is read, so that the
/// index of the log stays in memory and no `-shm` file is opened. Closing it merges no log. Not defensive: shadow tables of virtual
/// tables are copied as they are.
pub(crate) fn exclusive(path: &Path) -> Result<Connection, OpenErrorKind> {
    let connection = open(path.as_os_str().as_bytes(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(Duration::ZERO)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    crate::open::load_schema(&connection)?;
    configure(&connection)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// A connection to a file that nobody else knows: neither journal nor sync, for the caller syncs the file once and throws it away on
/// any error. The schema may be written directly.
pub(crate) fn private(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path.as_os_str().as_bytes(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    Ok(connection)
}

/// A reading connection to a file that nobody writes: takes no locks and leaves no side file, whatever the header says.
pub(crate) fn resting(path: &Path) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?mode=ro&immutable=1", crate::open::percent_encoded(path));
    let connection = open(uri.as_bytes(), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
    configure(&connection)?;
    Ok(connection)
}

#[expect(
    clippy::disallowed_methods,
    reason = "an offline rewrite needs its locking mode before anything is read; everything else opens through `open`"
)]
fn open(name: &[u8], access: OpenFlags) -> rusqlite::Result<Connection> {
    let name = Path::new(std::ffi::OsStr::from_bytes(name));
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(name, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(connection)
}

/// What needs the schema.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "foreign_keys", false)?;
    crate::open::settle(connection)
}

/// An absolute path as a parameter of `ATTACH` or `VACUUM INTO`; it need not be UTF-8.
pub(crate) struct PathText<'a>(pub(crate) &'a Path);

impl ToSql for PathText<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0.as_os_str().as_bytes())))
    }
}
