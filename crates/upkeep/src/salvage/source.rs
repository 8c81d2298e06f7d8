//! The damaged file, open for reading.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::header::Header;
use super::target::Target;
use super::{SalvageError, SalvageErrorKind};
use crate::open::{DamagedDatabase, DatabaseFile, OpenErrorKind};

/// A damaged database, open.
pub(super) struct Source {
    database: DamagedDatabase,
    path: PathBuf,
    header: Header,
    has_log: bool,
    is_rebuilt: bool,
    // After the connection: closing a descriptor of a file drops this process's locks on it.
    pages: File,
    // Last: it removes the files that the others have open.
    _copy: Option<PrivateCopy>,
}

impl Source {
    /// Opens the database at `path`; through a private copy beside `target` where its header is broken.
    pub(super) fn open(path: &Path, target: &Target) -> Result<Self, SalvageError> {
        let found = DatabaseFile::find_damaged(path, false)?;
        let fail = |kind: SalvageErrorKind| kind.at(path);
        let io = |error: io::Error| fail(SalvageErrorKind::Source(error.into()));
        let pages = File::open(found.path()).map_err(io)?;
        let header = Header::read(&pages).map_err(io)?;
        let log_bytes = fs::metadata(found.beside("-wal")).map_or(0, |log| log.len());
        if header.is_sound() {
            let found = DatabaseFile::find_damaged(path, header.is_wal())?;
            return Self::with(found.clone(), found.path(), header, pages, log_bytes > 0, None).map_err(fail);
        }
        let file_bytes = pages.metadata().map_err(io)?.len();
        let header = header
            .rebuilt(&pages, file_bytes, log_bytes > 0)
            .map_err(io)?
            .ok_or_else(|| fail(SalvageErrorKind::NoPages))?;
        drop(pages);
        let copy =
            PrivateCopy::make(&found, target, &header).map_err(|error| fail(SalvageErrorKind::Io(error)))?;
        let copied = DatabaseFile::find_damaged(&copy.path, header.is_wal())?;
        let pages = File::open(&copy.path).map_err(io)?;
        Self::with(copied, found.path(), header, pages, log_bytes > 0, Some(copy)).map_err(fail)
    }

    fn with(
        file: DatabaseFile,
        path: &Path,
        header: Header,
        pages: File,
        has_log: bool,
        copy: Option<PrivateCopy>,
    ) -> Result<Self, SalvageErrorKind> {
        let database = DamagedDatabase::open(file).map_err(|kind| {
            if matches!(kind, OpenErrorKind::Damaged | OpenErrorKind::NotADatabase) {
                SalvageErrorKind::SchemaLost
            } else {
                SalvageErrorKind::Source(kind)
            }
        })?;
        // One state of a database in use, from here to the end.
        database.connection.execute_batch("BEGIN").map_err(|error| SalvageErrorKind::Source(error.into()))?;
        Ok(Self {
            database,
            path: path.to_owned(),
            header,
            has_log,
            is_rebuilt: copy.is_some(),
            pages,
            _copy: copy,
        })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.database.connection
    }

    /// The path of the damaged file itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn is_rebuilt(&self) -> bool {
        self.is_rebuilt
    }

    /// The pages of the file; `None` where a log holds newer ones.
    pub(super) fn pages(&self) -> Option<&File> {
        (!self.has_log).then_some(&self.pages)
    }

    /// Nobody wrote to the file while it was read.
    pub(super) fn ensure_unchanged(&self) -> Result<(), SalvageError> {
        self.database.ensure_unchanged().map_err(|kind| SalvageErrorKind::Source(kind).at(&self.path))
    }
}

/// A copy of the damaged file with another header, removed at the end.
struct PrivateCopy {
    path: PathBuf,
}

impl PrivateCopy {
    fn make(file: &DatabaseFile, target: &Target, header: &Header) -> io::Result<Self> {
        let copy = Self { path: target.beside("-source") };
        copy.remove();
        clone_or_copy(file.path(), &copy.path)?;
        if file.beside("-wal").exists() {
            clone_or_copy(&file.beside("-wal"), &copy.beside("-wal"))?;
        }
        let written = fs::OpenOptions::new().write(true).open(&copy.path)?;
        written.write_all_at(header.bytes(), 0)?;
        Ok(copy)
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // What is not there needs no removal, and what cannot be removed is overwritten by the next salvage.
            let _outcome = fs::remove_file(self.beside(suffix));
        }
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Shares the blocks where the file system can, which costs no space.
fn clone_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let source = File::open(from)?;
        let target = fs::OpenOptions::new().write(true).create_new(true).open(to)?;
        if rustix::fs::ioctl_ficlone(&target, &source).is_ok() {
            return Ok(());
        }
    }
    // Not `fs::copy`'s permissions: a damaged file may be read-only.
    let mut source = File::open(from)?;
    let mut target = fs::OpenOptions::new().write(true).create(true).truncate(true).open(to)?;
    io::copy(&mut source, &mut target).map(drop)
}
