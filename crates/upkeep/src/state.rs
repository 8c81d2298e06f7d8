//! Headwater's own file of receipts, for databases that have no place for them (P6).
//!
//! One SQLite file per user, by default `$XDG_STATE_HOME/headwater/receipts.db`; the path is an argument here. It is
//! content-free: hashes, counts, ids and reasons, never text of a conversation. Every commit is synced before the call returns, which
//! is what the order *intent, change, resolution* of a prune relies on (`docs/spec/prune-protocol.md`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::OpenErrorKind;

mod claim;
mod identity;
mod receipts;
mod runs;

pub use claim::DatabaseClaim;
pub(crate) use identity::hex;
pub use identity::{DatabaseIdentity, DatabaseKey};
pub use receipts::{Evidence, Intent, Resolution, StoredReceipt};
pub use runs::{Run, RunEnd, RunId, RunKind};

/// `Hdwr`, in the header of every state file.
const APPLICATION_ID: i32 = 0x4864_7772;
/// Version of the tables in `schema.sql`.
const SCHEMA_VERSION: i32 = 1;

/// Why the state file cannot be used. What the operation was about to change is unchanged.
#[derive(Debug, thiserror::Error)]
#[error("state file {}: {kind}", .path.display())]
pub struct StateError {
    /// The state file.
    pub path: PathBuf,
    /// What is in the way.
    #[source]
    pub kind: StateErrorKind,
}

/// What is in the way of using a state file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateErrorKind {
    /// The file is something else.
    #[error("not a state file of headwater")]
    NotAStateFile,
    /// A newer version wrote it.
    #[error("written by a newer version (format {found}, this program knows {SCHEMA_VERSION})")]
    Newer {
        /// The version in the file.
        found: i32,
    },
    /// Another process prunes the same database.
    #[error("another prune of the same database is running")]
    Busy,
    /// The disk is full.
    #[error("no room on the file system")]
    NoRoom,
    /// The file system refuses access.
    #[error("permission denied")]
    PermissionDenied,
    /// A stored value is not what this program writes.
    #[error("a stored value is damaged")]
    Damaged,
    /// Any other error of the file system.
    #[error("it cannot be used: {0}")]
    Io(#[source] io::Error),
    /// Any other error of SQLite.
    #[error("SQLite cannot use it: {0}")]
    Sqlite(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for StateErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        if OpenErrorKind::is_no_room(&error) {
            return Self::NoRoom;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::NotADatabase) => Self::NotAStateFile,
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged,
            Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Self::PermissionDenied,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<io::Error> for StateErrorKind {
    fn from(error: io::Error) -> Self {
        let kind = error.kind();
        if kind == io::ErrorKind::PermissionDenied {
            Self::PermissionDenied
        } else if matches!(
            kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        ) {
            Self::NoRoom
        } else {
            Self::Io(error)
        }
    }
}

/// An open state file.
#[derive(Debug)]
pub struct StateFile {
    connection: Connection,
    path: PathBuf,
}

impl StateFile {
    /// Opens the state file at `path`, and creates it (mode 0600, a missing folder 0700) where there is none.
    ///
    /// # Errors
    /// [`StateError`] where the file is something else, of a newer format, or cannot be created or written.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        Self::connect(path).map_err(|kind| StateError { path: path.to_owned(), kind })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connect(path: &Path) -> Result<Self, StateErrorKind> {
        create_empty(path)?;
        let connection = open_connection(path)?;
        connection.busy_timeout(crate::LOCK_WAIT)?;
        // FULL leaves the end of the journal, which is the commit, to the next sync of the folder.
        connection.pragma_update(None, "synchronous", "EXTRA")?;
        connection.pragma_update(None, "trusted_schema", false)?;
        let mut state = Self { connection, path: path.to_owned() };
        state.ensure_schema()?;
        Ok(state)
    }

    fn ensure_schema(&mut self) -> Result<(), StateErrorKind> {
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)?;
        let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (application_id, version) = (pragma("application_id")?, pragma("user_version")?);
        let tables: u32 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        match (application_id, version, tables) {
            (0, 0, 0) => {
                transaction.execute_batch(include_str!("state/schema.sql"))?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
                transaction.commit()?;
                Ok(())
            }
            (APPLICATION_ID, SCHEMA_VERSION, _) => Ok(()),
            (APPLICATION_ID, found, _) => Err(StateErrorKind::Newer { found }),
            _ => Err(StateErrorKind::NotAStateFile),
        }
    }

    /// Runs `body` in one synced transaction.
    fn write<T>(
        &mut self,
        body: impl FnOnce(&Connection) -> Result<T, StateErrorKind>,
    ) -> Result<T, StateError> {
        let Self { connection, path } = self;
        let run = || {
            let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
            let answer = body(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        };
        run().map_err(|kind| StateError { path: path.clone(), kind })
    }

    fn read<T>(&self, body: impl FnOnce(&Connection) -> Result<T, StateErrorKind>) -> Result<T, StateError> {
        body(&self.connection).map_err(|kind| StateError { path: self.path.clone(), kind })
    }
}

/// Creates the folder and an empty file, which SQLite takes as a database without tables: a crash before the tables are committed
/// leaves a file that the next run finishes.
fn create_empty(path: &Path) -> Result<(), StateErrorKind> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.exists()
    {
        create_folder(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            file.sync_all()?;
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::metadata(path)?.is_file() {
                Ok(())
            } else {
                Err(StateErrorKind::NotAStateFile)
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates a folder with those above it, each on the disk: what is synced in a folder whose name is lost is lost too.
fn create_folder(folder: &Path) -> io::Result<()> {
    let is_missing = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for name in missing.iter().rev() {
        let above = name.parent().filter(|above| !above.as_os_str().is_empty());
        File::open(above.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the state file is Headwater's own; `open` is for OpenCode's databases"
)]
fn open_connection(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

#[cfg(test)]
mod tests;
