//! The one place that opens an OpenCode database, for reading or for writing, with every pragma set.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::schema::Schema;

/// Page cache of one connection in KiB. Two connections, a sorter and buffers stay under the 64 MiB that any command may use.
const CACHE_KIB: i64 = 8 * 1024;

/// Why a database cannot be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {}: {kind}", .path.display())]
pub struct OpenError {
    /// The path as given.
    pub path: PathBuf,
    /// What is in the way.
    #[source]
    pub kind: OpenErrorKind,
}

/// What is in the way of opening a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// Nothing is at the path.
    #[error("no such file")]
    NotFound,
    /// A directory, socket, device or pipe is at the path.
    #[error("not a regular file")]
    NotAFile,
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The first bytes are not those of an SQLite database; an encrypted database looks the same.
    #[error("not an SQLite database, or an encrypted one")]
    NotADatabase,
    /// The file system refuses access.
    #[error("permission denied")]
    PermissionDenied,
    /// Another process holds a lock that excludes this access.
    #[error("locked by another process")]
    Busy,
    /// SQLite finds the file damaged.
    #[error("the database is damaged")]
    Damaged,
    /// Neither the tables of 1.x nor those of 2.x are there.
    #[error("no OpenCode tables in this database")]
    WrongSchema,
    /// Any other error of the file system.
    #[error("{0}")]
    Io(io::Error),
    /// Any other error of SQLite.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for OpenErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged,
            Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Self::PermissionDenied,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<io::Error> for OpenErrorKind {
    fn from(error: io::Error) -> Self {
        let kind = error.kind();
        if kind == io::ErrorKind::NotFound {
            Self::NotFound
        } else if kind == io::ErrorKind::PermissionDenied {
            Self::PermissionDenied
        } else {
            Self::Io(error)
        }
    }
}

/// A database file that exists and starts like an SQLite database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseFile {
    path: PathBuf,
    is_wal: bool,
}

impl DatabaseFile {
    /// Resolves symlinks in `path` and looks at the first bytes.
    ///
    /// Opens and closes the file: a process that holds SQLite's locks on it must not call this (MEASURED: closing any descriptor
    /// of a file drops all locks that the process has on it).
    ///
    /// # Errors
    /// [`OpenError`] where there is no readable SQLite database.
    pub fn find(path: &Path) -> Result<Self, OpenError> {
        Self::examine(path).map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    fn examine(path: &Path) -> Result<Self, OpenErrorKind> {
        let path = fs::canonicalize(path)?;
        if !fs::metadata(&path)?.is_file() {
            return Err(OpenErrorKind::NotAFile);
        }
        let mut header = [0_u8; 100];
        let mut file = File::open(&path)?;
        match file.read_exact(&mut header) {
            Ok(()) => {}
            Err(_) if file.metadata()?.len() == 0 => return Err(OpenErrorKind::Empty),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(OpenErrorKind::NotADatabase);
            }
            Err(error) => return Err(error.into()),
        }
        if !header.starts_with(b"SQLite format 3\0") {
            return Err(OpenErrorKind::NotADatabase);
        }
        Ok(Self { path, is_wal: header[18] == 2 })
    }

    /// The path with all symlinks resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the header says write-ahead log.
    pub fn is_wal(&self) -> bool {
        self.is_wal
    }

    /// A file beside the database: `suffix` is `-wal`, `-shm` or `-journal`.
    pub fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }
}

/// A database open for reading only. Reading writes nothing: no checkpoint, no side file, no journal.
#[derive(Debug)]
pub struct ReadDatabase {
    connection: Connection,
    file: DatabaseFile,
    schema: Schema,
}

impl ReadDatabase {
    /// Opens `path` for reading.
    ///
    /// # Errors
    /// [`OpenError`] where the file is missing, not a database, not OpenCode's, damaged, locked or not readable.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let file = DatabaseFile::find(path)?;
        Self::connect(file).map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    fn connect(file: DatabaseFile) -> Result<Self, OpenErrorKind> {
        // A WAL database without a log has no writer with unmerged rows, and a plain read-only open would leave `-wal` and `-shm`.
        let log_bytes = fs::metadata(file.beside("-wal")).map_or(0, |found| found.len());
        let immutable = file.is_wal && log_bytes == 0 && !file.beside("-shm").exists();
        let connection = open_uri(
            &file.path,
            if immutable { "mode=ro&immutable=1" } else { "mode=ro" },
            OpenFlags::SQLITE_OPEN_READ_ONLY,
        )?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "query_only", true)?;
        let schema = Schema::read(&connection)?;
        let layouts = schema.layouts();
        if !layouts.v1 && !layouts.v2 {
            return Err(OpenErrorKind::WrongSchema);
        }
        Ok(Self { connection, file, schema })
    }

    /// The connection, for statements that only read.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The file behind it.
    pub fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// What the file holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Another connection to the same file, for a second thread. It has its own view of a database in use.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`].
    pub fn another(&self) -> Result<Self, OpenError> {
        Self::connect(self.file.clone()).map_err(|kind| OpenError { path: self.file.path.clone(), kind })
    }
}

/// A database open for writing. The caller takes locks with `BEGIN IMMEDIATE` and runs checkpoints itself.
#[derive(Debug)]
pub struct WriteDatabase {
    connection: Connection,
    file: DatabaseFile,
    schema: Schema,
}

impl WriteDatabase {
    /// Opens `path` for writing. Waits at most `busy_timeout` for each lock.
    ///
    /// Foreign keys are off: every delete names its rows, and a cascade would remove rows that no plan showed. Closing runs no checkpoint.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`], and where the file cannot be written.
    pub fn open(path: &Path, busy_timeout: Duration) -> Result<Self, OpenError> {
        let file = DatabaseFile::find(path)?;
        Self::connect(file, busy_timeout).map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    fn connect(file: DatabaseFile, busy_timeout: Duration) -> Result<Self, OpenErrorKind> {
        let connection = open_uri(&file.path, "mode=rw", OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.busy_timeout(busy_timeout)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let schema = Schema::read(&connection)?;
        if connection.is_readonly("main")? {
            return Err(OpenErrorKind::PermissionDenied);
        }
        let layouts = schema.layouts();
        if !layouts.v1 && !layouts.v2 {
            return Err(OpenErrorKind::WrongSchema);
        }
        Ok(Self { connection, file, schema })
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The connection, for operations that need it alone (transactions, backup).
    pub fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The file behind it.
    pub fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// What the file holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one function that opens a database")]
fn open_uri(path: &Path, parameters: &str, access: OpenFlags) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?{parameters}", percent_encoded(path));
    let connection = Connection::open_with_flags(
        uri,
        access
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE,
    )?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "FILE")?;
    Ok(connection)
}

/// The path as the path of a URI: every byte outside the unreserved set and `/` is escaped, so `?`, `#`, `%`, spaces, newlines and
/// bytes that are not UTF-8 reach SQLite as they are.
fn percent_encoded(path: &Path) -> String {
    let mut encoded = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            escaped => {
                let digits = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
                encoded.extend(['%', digits(escaped >> 4), digits(escaped & 15)]);
            }
        }
    }
    encoded
}
