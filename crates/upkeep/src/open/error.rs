//! Why a database cannot be opened, and what a person can do about it.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why a database cannot be opened or read. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {}: {kind}", PrintablePath(.path))]
pub struct OpenError {
    /// The path as given.
    pub path: PathBuf,
    /// What is in the way.
    pub kind: OpenErrorKind,
}

/// What is in the way of opening a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// Nothing is at the path.
    #[error("no such file")]
    NotFound,
    /// The name of SQLite's database in memory, which has no file.
    #[error("an in-memory database has no file")]
    InMemory,
    /// A directory is at the path.
    #[error("it is a directory")]
    Directory,
    /// A socket, device or pipe is at the path.
    #[error("not a regular file")]
    NotAFile,
    /// Symbolic links lead in a circle.
    #[error("symbolic links lead in a circle")]
    SymlinkLoop,
    /// The path, with all links resolved, is longer than SQLite can open.
    #[error("the path has {bytes} bytes, the longest that SQLite opens has {PATH_BYTES_MAX}")]
    PathTooLong {
        /// Bytes of the path.
        bytes: usize,
    },
    /// The path cannot name a file on this system.
    #[error("not a possible path")]
    InvalidPath,
    /// A folder, pipe or device has the name of a file beside the database: opening it may wait for ever.
    #[error("what ends in {suffix} beside it is not a regular file")]
    SideFileNotAFile {
        /// `-wal`, `-shm` or `-journal`.
        suffix: &'static str,
    },
    /// The header asks for a newer SQLite, for writing or for anything.
    #[error("its format is newer than this program's SQLite")]
    NewerFormat,
    /// Text is stored in another encoding than OpenCode's.
    #[error("it stores text as {encoding}, not as UTF-8")]
    Encoding {
        /// As SQLite names it.
        encoding: String,
    },
    /// This process may open no further file.
    #[error("too many open files")]
    TooManyFiles,
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The first bytes are not those of an SQLite database; an encrypted database looks the same.
    #[error("not an SQLite database, or an encrypted one")]
    NotADatabase,
    /// The file system refuses access to the file or to a folder on the way.
    #[error("permission denied")]
    PermissionDenied,
    /// The write-ahead log or its index exists and cannot be read.
    #[error("permission denied for the file ending in {suffix} beside it")]
    SideFileDenied {
        /// `-wal`, `-shm` or `-journal`.
        suffix: &'static str,
    },
    /// The folder does not allow new files, so that nothing can be written safely.
    #[error("its folder is read-only, and writing needs a log beside the database")]
    ReadOnlyFolder,
    /// The file lies on a network file system, where locks and shared memory do not protect a writer.
    #[error("it lies on a network file system ({name})")]
    NetworkFileSystem {
        /// Name of the file system.
        name: &'static str,
    },
    /// Another process holds a lock that excludes this access.
    #[error("locked by another process")]
    Busy,
    /// A write was interrupted and its rollback journal waits to be played back, which changes the file.
    #[error("an interrupted write must be rolled back first")]
    NeedsRecovery,
    /// SQLite finds the file damaged.
    #[error("the database is damaged")]
    Damaged,
    /// Neither the tables of 1.x nor those of 2.x are there.
    #[error("no OpenCode tables in this database ({} tables: {})", .tables, .found.join(", "))]
    WrongSchema {
        /// The first names of tables, at most [`NAMES_MAX`].
        found: Vec<String>,
        /// Tables in all.
        tables: usize,
    },
    /// The tables are those of a conversation store.
    #[error("this is a conversation store, not an OpenCode database")]
    ConversationStore,
    /// Tables of a known name lack columns without which no rule applies.
    #[error("an unknown storage layout: {} missing", .missing.join(", "))]
    UnknownLayout {
        /// `table.column`, at most [`NAMES_MAX`].
        missing: Vec<String>,
    },
    /// The schema is far larger than that of any OpenCode.
    #[error(
        "the schema has more than {OBJECTS_MAX} objects or an object of more than {OBJECT_BYTES_MAX} bytes"
    )]
    SchemaTooLarge,
    /// The file was deleted or another one took its place while it was being opened.
    #[error("replaced or deleted while it was being opened")]
    Replaced,
    /// Another program wrote to the database while it was read without locks, so that what was read may not belong together.
    #[error("another program changed it while it was read")]
    ChangedWhileReading,
    /// This process has the file open for reading, with a read-only index that a writer cannot share.
    #[error("this process is still reading it")]
    HeldForReading,
    /// Any other error of the file system.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// Any other error of SQLite.
    #[error("{0}")]
    Sqlite(#[source] rusqlite::Error),
}

/// Most names that an error lists.
pub const NAMES_MAX: usize = 8;

/// Longest path in bytes: SQLite's 512, less room for the names of the files beside the database.
pub const PATH_BYTES_MAX: usize = 504;

/// Most tables, indexes, views and triggers. OpenCode has about 60; each further one costs memory before any rule can judge it.
pub const OBJECTS_MAX: usize = 1000;

/// Longest definition of one of them in bytes. The longest of OpenCode's has 1.2 KiB.
pub const OBJECT_BYTES_MAX: usize = 32 * 1024;

impl OpenErrorKind {
    /// What the person can do, as one sentence fragment; `None` where the error says it all.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound | Self::InMemory | Self::InvalidPath => {
                "name the database with --db, or run `headwater locate` to see where OpenCode keeps it"
            }
            Self::Directory => "name the database file inside it, usually opencode.db",
            Self::NotAFile | Self::SymlinkLoop => "name the database file itself",
            Self::PathTooLong { .. } => "open it through a shorter path",
            Self::SideFileNotAFile { .. } => "find out what made it, and move it away",
            Self::NewerFormat => "use a newer version of this program",
            Self::Encoding { .. } => "OpenCode writes UTF-8 only; this file was made by another program",
            Self::TooManyFiles => "raise the limit (`ulimit -n`) and run again",
            Self::Empty => "OpenCode has not written it yet, or it was cut off: use a backup",
            Self::NotADatabase => {
                "check the path; if the file should be a database, `headwater salvage` may recover it"
            }
            Self::PermissionDenied | Self::SideFileDenied { .. } => "run as the user who owns the database",
            Self::ReadOnlyFolder => "make the folder writable, or work on a copy",
            Self::NetworkFileSystem { .. } => "run on the machine that has the disk, or work on a local copy",
            Self::Busy => "wait until the other program is done, or stop it",
            Self::NeedsRecovery => {
                "start OpenCode once, or open the file once with the sqlite3 shell: both finish the rollback"
            }
            Self::Damaged => "run `headwater check`, then `headwater salvage` into a new file",
            Self::WrongSchema { .. } => "check the path; `headwater locate` lists OpenCode's databases",
            Self::ConversationStore => "`headwater conversation --help` lists what can be done with it",
            Self::UnknownLayout { .. } => "this version does not know the layout: use a newer one",
            Self::SchemaTooLarge => "check the path: this is not a database that OpenCode wrote",
            Self::Replaced | Self::ChangedWhileReading => "run again",
            Self::HeldForReading => "finish reading before writing",
            Self::Io(_) | Self::Sqlite(_) => return None,
        })
    }

    /// Whether SQLite's error says that a file cannot grow. A full disk is an error of its own. A limit on the size of files is a write that
    /// failed, like a broken disk, and SQLite keeps the reason to itself; so such an error counts where this process has a limit.
    pub fn is_no_room(error: &rusqlite::Error) -> bool {
        let limit = || rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        Self::is_no_room_under(error, limit)
    }

    fn is_no_room_under(error: &rusqlite::Error, file_size_limit: impl FnOnce() -> Option<u64>) -> bool {
        let extended = error.sqlite_error().map_or(0, |found| found.extended_code);
        error.sqlite_error_code() == Some(ErrorCode::DiskFull)
            || (extended == ffi::SQLITE_IOERR_WRITE && file_size_limit().is_some())
    }

    /// Whether SQLite's error says that the content of the file is broken, not that an access failed.
    pub fn is_damage(error: &rusqlite::Error) -> bool {
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }
}

impl From<rusqlite::Error> for OpenErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        let extended = error.sqlite_error().map_or(0, |found| found.extended_code);
        if extended == ffi::SQLITE_READONLY_ROLLBACK || extended == ffi::SQLITE_READONLY_RECOVERY {
            return Self::NeedsRecovery;
        }
        if extended == ffi::SQLITE_READONLY_DIRECTORY {
            return Self::ReadOnlyFolder;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged,
            Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Self::PermissionDenied,
            Some(ErrorCode::TooBig) => Self::SchemaTooLarge,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<io::Error> for OpenErrorKind {
    fn from(error: io::Error) -> Self {
        let errno = rustix::io::Errno::from_io_error(&error);
        let kind = error.kind();
        if kind == io::ErrorKind::NotFound || kind == io::ErrorKind::NotADirectory {
            Self::NotFound
        } else if kind == io::ErrorKind::PermissionDenied {
            Self::PermissionDenied
        } else if errno == Some(rustix::io::Errno::MFILE) || errno == Some(rustix::io::Errno::NFILE) {
            Self::TooManyFiles
        } else if errno == Some(rustix::io::Errno::LOOP) {
            Self::SymlinkLoop
        } else if kind == io::ErrorKind::InvalidInput || errno == Some(rustix::io::Errno::NAMETOOLONG) {
            Self::InvalidPath
        } else {
            Self::Io(error)
        }
    }
}

/// A path on one line: control characters are escaped, bytes that are not UTF-8 are replaced.
pub(super) struct PrintablePath<'a>(pub(super) &'a Path);

impl fmt::Display for PrintablePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string_lossy().chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_is_a_lack_of_room_only_under_a_limit_on_the_size_of_files() {
        let error = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        for (code, limit, expected) in [
            (ffi::SQLITE_FULL, None, true),
            (ffi::SQLITE_IOERR_WRITE, Some(4096), true),
            (ffi::SQLITE_IOERR_WRITE, None, false),
            (ffi::SQLITE_IOERR_READ, Some(4096), false),
            (ffi::SQLITE_CORRUPT, Some(4096), false),
        ] {
            let found = OpenErrorKind::is_no_room_under(&error(code), || limit);
            assert_eq!(found, expected, "{code} {limit:?}");
        }
    }
}
