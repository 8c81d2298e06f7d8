//! The proof that nobody else uses a database (P10): `SQLite`'s own exclusive lock, held to the end.

use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;

use crate::open::Writing;
use crate::os::FileIdentity;
use crate::rebuild::connect;
use crate::rebuild::error::{Doing, Named, RebuildErrorKind};
use crate::schema::Schema;
use crate::{DatabaseFile, OpenErrorKind};

/// A database under an exclusive lock. While it lives this process opens the file by no other means: closing any descriptor of the
/// file would drop the lock silently (POSIX).
#[derive(Debug)]
pub(crate) struct ExclusiveDatabase {
    connection: Connection,
    file: DatabaseFile,
    identity: FileIdentity,
    locked_at: Instant,
    log_bytes_at_lock: u64,
    // SQLite names its temporary files through it.
    _folder: Option<fs::File>,
    // After the connection: it must outlive it.
    _writing: Writing,
}

impl ExclusiveDatabase {
    /// Takes the lock, without waiting.
    ///
    /// An idle connection of another process to a database with a write-ahead log refuses it. A process that has opened the file
    /// and run no statement does not, nor does an idle connection to a database with a rollback journal: they are met at the lease.
    pub(crate) fn lock(file: DatabaseFile) -> Result<Self, RebuildErrorKind> {
        crate::open::ensure_writable(&file).map_err(RebuildErrorKind::Open)?;
        let writing = Writing::register(&file).map_err(RebuildErrorKind::Open)?;
        let identity = FileIdentity::of(file.path()).doing("looking at the database")?;
        let log_bytes_at_lock = log_bytes(&file);
        let (connection, folder) = Self::connect(&file).map_err(|error| Self::refusal(&file, error))?;
        if connection.is_readonly("main").doing("asking for write access")? {
            // The system allows it: so the header names a version of the format that this SQLite may only read.
            return Err(RebuildErrorKind::Open(OpenErrorKind::NewerFormat));
        }
        Ok(Self {
            connection,
            file,
            identity,
            locked_at: Instant::now(),
            log_bytes_at_lock,
            _folder: folder,
            _writing: writing,
        })
    }

    fn connect(file: &DatabaseFile) -> Result<(Connection, Option<fs::File>), OpenErrorKind> {
        let connection = connect::exclusive(file.path())?;
        // In exclusive locking mode the lock outlives the transaction, and a checkpoint needs to stand outside of one.
        connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
        let folder = put_temporary_files_in(file.folder(), &connection)?;
        Ok((connection, folder))
    }

    fn refusal(file: &DatabaseFile, kind: OpenErrorKind) -> RebuildErrorKind {
        if matches!(kind, OpenErrorKind::Busy) {
            RebuildErrorKind::InUse { holders: Named(file.holders()) }
        } else {
            RebuildErrorKind::Open(kind)
        }
    }

    /// The connection that holds the lock.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The same, for a backup into it.
    pub(crate) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The file.
    pub(crate) fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// Which file that was when it was locked.
    pub(crate) fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Milliseconds since the lock was taken.
    pub(crate) fn held_ms(&self) -> u64 {
        u64::try_from(self.locked_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Bytes that the log has now and did not have when the lock was asked for.
    pub(crate) fn log_growth(&self) -> u64 {
        log_bytes(&self.file).saturating_sub(self.log_bytes_at_lock)
    }

    /// Whether the log held anything when the lock was asked for.
    pub(crate) fn had_log(&self) -> bool {
        self.log_bytes_at_lock > 0
    }

    /// The tables; refuses a database that is not OpenCode's.
    pub(crate) fn schema(&self) -> Result<Schema, RebuildErrorKind> {
        let schema = Schema::read(&self.connection).doing("reading the schema")?;
        crate::open::ensure_layout(&self.connection, &schema).map_err(RebuildErrorKind::Open)?;
        Ok(schema)
    }

    /// Gives the lock back. An empty log goes first: nobody can have opened it while the lock is held.
    pub(crate) fn release(self) {
        if self.file.is_wal() && log_bytes(&self.file) == 0 {
            let _absent_or_harmless = fs::remove_file(self.file.beside("-wal"));
        }
    }

    /// Moves the log into the database and empties it, so that no frame of the old file can be read into a new one.
    pub(crate) fn merge_log(&self) -> Result<(), RebuildErrorKind> {
        if self.file.is_wal() {
            let busy: i64 = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
                .doing("merging the log")?;
            if busy != 0 {
                return Err(RebuildErrorKind::InUse { holders: Named(self.file.holders()) });
            }
        }
        // Whatever lies under these names would be read into the file that takes the path.
        if log_bytes(&self.file) != 0 {
            return Err(RebuildErrorKind::Unsupported(
                "a log that does not belong to the database is beside it".into(),
            ));
        }
        if is_hot_journal(&self.file) {
            return Err(RebuildErrorKind::Open(OpenErrorKind::NeedsRecovery));
        }
        Ok(())
    }
}

impl Drop for ExclusiveDatabase {
    fn drop(&mut self) {
        let _default_or_not = self.connection.pragma_update(None, "temp_store_directory", "");
    }
}

/// Makes SQLite write what it sorts, and what `VACUUM` copies, beside the database instead of into the system's temporary folder:
/// that one may be a small disk of its own, or memory, and the room that is asked for is asked beside the database. The setting is
/// one for the whole process. A folder whose name is not UTF-8 cannot be named in SQL; it is named by the descriptor in the answer, for as
/// long as that is open.
fn put_temporary_files_in(folder: &Path, connection: &Connection) -> Result<Option<fs::File>, OpenErrorKind> {
    let put = |name: &str| connection.pragma_update(None, "temp_store_directory", name);
    if let Some(name) = folder.to_str() {
        put(name)?;
        return Ok(None);
    }
    let opened = fs::File::open(folder).map_err(OpenErrorKind::from)?;
    put(&format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
    Ok(Some(opened))
}

fn log_bytes(file: &DatabaseFile) -> u64 {
    fs::metadata(file.beside("-wal")).map_or(0, |found| found.len())
}

/// A journal whose header was zeroed is finished and harmless (SQLite, "pragma `locking_mode`").
fn is_hot_journal(file: &DatabaseFile) -> bool {
    let mut first = [0_u8];
    let read = fs::File::open(file.beside("-journal")).and_then(|mut journal| journal.read(&mut first));
    read.is_ok_and(|length| length == 1 && first[0] != 0)
}
