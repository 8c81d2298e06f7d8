//! Which database a receipt belongs to.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::{StateError, StateFile};
use crate::DatabaseFile;

/// What tells one database from every other, for the keeping of receipts.
///
/// The path with symlinks resolved, and a hash of the oldest row of `migration`, which is written once when the database is created
/// (fact A1). Both survive everything OpenCode writes, an upgrade to 2.x, and a rebuild in place. A copy elsewhere has another path; a
/// fresh database at the same path has another creation time. An older backup put back at the same path is the same database: its
/// receipts are judged against the stored rows, as every receipt is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseIdentity {
    path: PathBuf,
    origin: String,
}

/// The row of a [`DatabaseIdentity`] in one state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatabaseKey(pub(super) i64);

impl DatabaseIdentity {
    /// Reads the identity of the database behind `connection`.
    ///
    /// # Errors
    /// Any error of SQLite. A database without the table `migration` is told apart by its path alone.
    pub fn read(connection: &Connection, file: &DatabaseFile) -> rusqlite::Result<Self> {
        let has_migrations: bool = connection.query_row(
            "SELECT count(*) FROM pragma_table_info('migration') WHERE name IN ('id', 'time_completed')",
            [],
            |row| Ok(row.get::<_, u32>(0)? == 2),
        )?;
        let oldest = if has_migrations {
            connection
                .query_row(
                    "SELECT time_completed || ' ' || id FROM migration ORDER BY time_completed, id LIMIT 1",
                    [],
                    |row| row.get::<_, String>(0),
                )
                .optional()?
        } else {
            None
        };
        let origin = oldest.map_or_else(String::new, |oldest| hex(&Sha256::digest(oldest.as_bytes())));
        Ok(Self { path: file.path().to_owned(), origin })
    }

    /// The path, with symlinks resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hash of the creation record, 64 hex digits; empty where the database has none.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

impl StateFile {
    /// The row of `identity`, made where there is none.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be written.
    pub fn database(&mut self, identity: &DatabaseIdentity) -> Result<DatabaseKey, StateError> {
        let path = identity.path.as_os_str().as_bytes();
        let find = |connection: &Connection| {
            connection
                .query_row(
                    "SELECT id FROM database WHERE path = ?1 AND origin = ?2",
                    params![path, identity.origin],
                    |row| row.get(0).map(DatabaseKey),
                )
                .optional()
        };
        if let Some(found) = self.read(|connection| Ok(find(connection)?))? {
            return Ok(found);
        }
        self.write(|connection| {
            connection.execute(
                "INSERT OR IGNORE INTO database (path, origin) VALUES (?1, ?2)",
                params![path, identity.origin],
            )?;
            find(connection)?.ok_or(super::StateErrorKind::Damaged)
        })
    }
}
