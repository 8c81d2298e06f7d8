//! What the file system says of a database and its side files, taken without opening any of them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode: the same file under any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    /// The file that was looked at.
    pub(crate) fn of(found: &fs::Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// One file at one moment. Two equal states mean that nothing was written in between (Linux stamps a write with a finer time than
/// that of a state already looked at; older kernels within about 4 ms). The time of the last status change is left out: SQLite, run
/// by root, sets the owner of a log again when it opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) id: FileId,
    pub(crate) bytes: u64,
    modified: (i64, i64),
}

impl FileState {
    /// The state of the file at `path`, `None` where there is none.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(found) => Ok(Some(Self {
                id: FileId::of(&found),
                bytes: found.size(),
                modified: (found.mtime(), found.mtime_nsec()),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
