//! Opening a file whose content is not trusted.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::access::{Access, Surroundings};
use super::registry::{Registration, Use};
use super::{DatabaseFile, LOCK_WAIT, OpenErrorKind, explain, open_reading, settle, within_schema_budget};

/// A reading connection to a file whose content is not trusted: no layout is asked for, and SQLite goes on past what it would refuse.
#[derive(Debug)]
pub(crate) struct DamagedDatabase {
    pub(crate) connection: Connection,
    pub(crate) file: DatabaseFile,
    access: Access,
    surroundings: Surroundings,
    // After the connection: it must outlive it.
    _registration: Registration,
}

impl DamagedDatabase {
    /// Opens `file`, whose header must be one that SQLite accepts.
    pub(crate) fn open(file: DatabaseFile) -> Result<Self, OpenErrorKind> {
        let surroundings = Surroundings::of(&file)?;
        surroundings.ensure_same(&file)?;
        if file.has_hot_journal()? {
            return Err(OpenErrorKind::NeedsRecovery);
        }
        let access = surroundings.access(&file);
        let registration = Registration::new(file.id(), file.is_wal(), Use::Reading)?;
        let connection = open_reading(&file, access, LOCK_WAIT).map_err(|kind| explain(kind, &file))?;
        // Nothing is written: the file is open read-only. The flag makes SQLite accept a file that is shorter than its header says, and
        // a schema of which some entries are broken.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
        connection.pragma_update(None, "writable_schema", true)?;
        within_schema_budget(&connection, || {
            match connection.query_row("SELECT count(name) FROM sqlite_schema", [], |_| Ok(())) {
                Err(error) if OpenErrorKind::is_damage(&error) => Ok(()),
                outcome => outcome,
            }
        })?;
        settle(&connection)?;
        Ok(Self { connection, file, access, surroundings, _registration: registration })
    }

    /// As [`ReadDatabase::ensure_unchanged`].
    pub(crate) fn ensure_unchanged(&self) -> Result<(), OpenErrorKind> {
        if self.access.is_unlocked() {
            self.surroundings.ensure_unwritten(&Surroundings::of(&self.file)?)?;
        }
        Ok(())
    }
}
