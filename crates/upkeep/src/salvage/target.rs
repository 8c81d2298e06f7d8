//! The new file: hidden under a temporary name until it is verified and on the disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

use super::source::Source;
use super::{SalvageErrorKind, SalvageStep};
use crate::observer::Observer;

/// A file under way.
pub(super) struct Target {
    path: PathBuf,
    hidden: PathBuf,
    connection: Option<Connection>,
    /// Holds the advisory lock that tells two salvages to the same target apart; SQLite's locks are of another kind.
    lock: File,
    is_published: bool,
}

impl Target {
    /// Takes the temporary name for `path`, and what a killed salvage left under it.
    pub(super) fn reserve(path: &Path) -> Result<Self, SalvageErrorKind> {
        let name = path.file_name().ok_or(SalvageErrorKind::Io(io::ErrorKind::InvalidInput.into()))?;
        let mut hidden_name = std::ffi::OsString::from(".");
        hidden_name.push(name);
        hidden_name.push(".salvage");
        let hidden = path.with_file_name(hidden_name);
        let open = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&hidden);
        let lock = open.map_err(SalvageErrorKind::Io)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => SalvageErrorKind::TargetInUse,
            error => SalvageErrorKind::Io(error.into()),
        })?;
        let target = Self { path: path.to_owned(), hidden, connection: None, lock, is_published: false };
        target.lock.set_len(0).map_err(SalvageErrorKind::Io)?;
        target.remove_beside();
        Ok(target)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The temporary name with a suffix.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.hidden.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }

    /// Makes the database, set up as the damaged one.
    pub(super) fn create(&mut self, source: &Source) -> Result<(), SalvageErrorKind> {
        let connection = open(&self.hidden).map_err(SalvageErrorKind::Write)?;
        let page_bytes = source.header().page_bytes().unwrap_or(4096);
        let encoding: String =
            source.connection().pragma_query_value(None, "encoding", |row| row.get(0)).unwrap_or_default();
        let set_up = || {
            connection.pragma_update(None, "page_size", page_bytes)?;
            if encoding.starts_with("UTF-16") {
                connection.pragma_update(None, "encoding", &encoding)?;
            }
            // Nobody sees the file before it is synced, and a crash leaves only a temporary one.
            connection.pragma_update(None, "journal_mode", "off")?;
            connection.pragma_update(None, "synchronous", "off")?;
            connection.pragma_update(None, "cache_size", -8192)?;
            connection.execute_batch("BEGIN")
        };
        set_up().map_err(SalvageErrorKind::Write)?;
        self.connection = Some(connection);
        Ok(())
    }

    pub(super) fn connection(&self) -> Result<&Connection, SalvageErrorKind> {
        self.connection.as_ref().ok_or(SalvageErrorKind::VerificationFailed)
    }

    /// Commits, and sets what is left of the set-up.
    pub(super) fn settle(&self, source: &Source) -> Result<(), SalvageErrorKind> {
        let connection = self.connection()?;
        let settle = || {
            for name in ["user_version", "application_id"] {
                let value = source.connection().pragma_query_value(None, name, |row| row.get::<_, i64>(0));
                connection.pragma_update(None, name, value.unwrap_or(0))?;
            }
            connection.execute_batch("COMMIT")?;
            if source.header().is_wal() {
                let _mode: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
            }
            Ok(())
        };
        settle().map_err(SalvageErrorKind::Write)
    }

    /// Writes the file to the disk and gives it its name. Returns its size.
    pub(super) fn publish(mut self, observer: &dyn Observer) -> Result<ByteCount, SalvageErrorKind> {
        if let Some(connection) = self.connection.take() {
            connection.close().map_err(|(_, error)| SalvageErrorKind::Write(error))?;
        }
        self.lock.sync_all().map_err(SalvageErrorKind::Io)?;
        observer.reached(SalvageStep::Synced.name());
        match renameat_with(CWD, &self.hidden, CWD, &self.path, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => return Err(SalvageErrorKind::TargetExists),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => self.link()?,
            Err(error) => return Err(SalvageErrorKind::Io(error.into())),
        }
        self.is_published = true;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(SalvageErrorKind::Io)?;
        folder.sync_all().map_err(SalvageErrorKind::Io)?;
        let bytes = self.lock.metadata().map_err(SalvageErrorKind::Io)?.len();
        Ok(ByteCount::new(bytes))
    }

    /// For file systems that cannot rename without replacing.
    fn link(&self) -> Result<(), SalvageErrorKind> {
        fs::hard_link(&self.hidden, &self.path).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                SalvageErrorKind::TargetExists
            } else {
                SalvageErrorKind::Io(error)
            }
        })?;
        fs::remove_file(&self.hidden).map_err(SalvageErrorKind::Io)
    }

    fn remove_beside(&self) {
        for suffix in ["-journal", "-wal", "-shm"] {
            // Most are not there.
            let _outcome = fs::remove_file(self.beside(suffix));
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_published {
            drop(self.connection.take());
            self.remove_beside();
            // The next salvage takes over what cannot be removed.
            let _outcome = fs::remove_file(&self.hidden);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a new file, which the rules for opening do not fit")]
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "FILE")?;
    Ok(connection)
}
