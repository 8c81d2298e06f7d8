//! Which database files this process has open, so that a second look at one never drops the locks of the first.
//!
//! POSIX releases every lock that a process has on a file when the process closes *any* descriptor of it. SQLite knows this and
//! defers its own closes; an ordinary `File` does not. So the header of a file is read by [`format_of`] only while nothing here has
//! the file open, and remembered for as long as something has.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::OpenErrorKind;
use super::fingerprint::FileId;

/// What is open in this process, by file.
static OPEN: Mutex<BTreeMap<FileId, Entry>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Default)]
struct Entry {
    is_wal: bool,
    readers: u32,
    writers: u32,
    /// The file itself, where somebody reads its pages: closed with the last connection.
    raw: Option<Arc<File>>,
}

/// How a registered connection uses the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// With the log's index mapped read-only.
    Reading,
    /// For writing.
    Writing,
}

/// Keeps a file registered until the last clone is dropped. Declare it after the connection, so that it outlives it.
#[derive(Clone, Debug)]
pub(super) struct Registration(Arc<Registered>);

#[derive(Debug)]
struct Registered {
    file: FileId,
    usage: Use,
    raw: OnceLock<Arc<File>>,
}

/// What the header of a file says of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Write-ahead log.
    pub(super) is_wal: bool,
    /// Only a newer SQLite may write it.
    pub(super) is_newer: bool,
}

/// The format of the file at `path`.
///
/// # Errors
/// [`OpenErrorKind`] where the file cannot be read or its header is not that of a database that may be read.
pub(super) fn format_of(file: FileId, path: &Path) -> Result<Format, OpenErrorKind> {
    // The lock is held until the descriptor is closed: nobody can register and lock the file in between.
    let open = lock();
    match open.get(&file) {
        // Whoever has it open found that it may be used so.
        Some(entry) => Ok(Format { is_wal: entry.is_wal, is_newer: false }),
        None => read_format(path),
    }
}

fn read_format(path: &Path) -> Result<Format, OpenErrorKind> {
    let mut header = [0_u8; 100];
    let mut file = File::open(path)?;
    match file.read_exact(&mut header) {
        // The version of the format that a reader must know.
        Ok(()) if header.starts_with(b"SQLite format 3\0") && header[19] > 2 => {
            Err(OpenErrorKind::NewerFormat)
        }
        Ok(()) if header.starts_with(b"SQLite format 3\0") => {
            Ok(Format { is_wal: header[19] == 2, is_newer: header[18] > 2 })
        }
        Ok(()) => Err(OpenErrorKind::NotADatabase),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(OpenErrorKind::NotADatabase),
        Err(error) => Err(error.into()),
    }
}

impl Registration {
    /// Registers `file` before a connection to it is opened.
    ///
    /// # Errors
    /// [`OpenErrorKind::HeldForReading`] for a writer while a reader is registered: SQLite shares one mapping of the log's index
    /// per process, and the reader's is read-only.
    pub(super) fn new(file: FileId, is_wal: bool, usage: Use) -> Result<Self, OpenErrorKind> {
        let mut open = lock();
        let entry = open.entry(file).or_insert(Entry { is_wal, ..Entry::default() });
        match usage {
            Use::Writing if entry.is_wal && entry.readers > 0 && entry.writers == 0 => {
                return Err(OpenErrorKind::HeldForReading);
            }
            Use::Writing => entry.writers += 1,
            Use::Reading => entry.readers += 1,
        }
        Ok(Self(Arc::new(Registered { file, usage, raw: OnceLock::new() })))
    }

    /// The registered file, which is at `path`, for reading its pages. It stays open until nobody here has the database open.
    ///
    /// # Errors
    /// Any error of opening it, and `NotFound` where another file is at `path` by now.
    pub(super) fn raw_file(&self, path: &Path) -> io::Result<&File> {
        if let Some(file) = self.0.raw.get() {
            return Ok(file);
        }
        let mut open = lock();
        let entry = open.get_mut(&self.0.file).ok_or(io::ErrorKind::NotFound)?;
        let file = if let Some(file) = &entry.raw {
            Arc::clone(file)
        } else {
            let is_same = |found: &Metadata| FileId::of(found) == self.0.file;
            if !is_same(&fs::metadata(path)?) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let file = Arc::new(File::open(path)?);
            if !file.metadata().is_ok_and(|found| is_same(&found)) {
                // Another file since a moment ago. Closing it would drop the locks that this process may have on that one.
                std::mem::forget(file);
                return Err(io::ErrorKind::NotFound.into());
            }
            entry.raw = Some(Arc::clone(&file));
            file
        };
        Ok(self.0.raw.get_or_init(|| file))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut open = lock();
        // Closed under the lock, if at all: nobody can have locked the file in between.
        drop(self.raw.take());
        let Some(entry) = open.get_mut(&self.file) else { return };
        match self.usage {
            Use::Reading => entry.readers -= 1,
            Use::Writing => entry.writers -= 1,
        }
        if entry.readers == 0 && entry.writers == 0 {
            open.remove(&self.file);
        }
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<FileId, Entry>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
