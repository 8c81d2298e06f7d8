//! The write-ahead log: how large it is, moving it, emptying it, putting it on disk. All of it outside the write lock.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use headwater_model::ByteCount;
use rusqlite::Connection;
use serde::Serialize;

use super::LockError;
use crate::WriteDatabase;

/// Pages that wait in the log before they are moved.
const MOVED_FRAMES: u64 = 1000;

/// The log of one database in write-ahead-log mode, and how commits of one connection wait for the disk.
///
/// A commit under `synchronous=NORMAL` syncs nothing, with one exception: the first one into an empty or restarted log writes its header
/// and syncs that, under the write lock, because old frames behind a header that reached the disk too late could be taken for new ones
/// (sqlite.org/src/info/ff5be73dee). Beside a program that writes a lot this one sync takes a second. Where the log is an empty file on
/// disk there are no old frames, so that nothing can be taken for something else, and that commit need not wait either
/// (`synchronous=OFF` for this one transaction). [`Log::sync`] puts header and frames on disk after the lock is given back.
#[derive(Debug)]
pub(super) struct Log<'c> {
    connection: &'c Connection,
    path: PathBuf,
    page_bytes: u32,
    /// The state of the database (`PRAGMA data_version`) in which the log was an empty file on disk.
    empty_in: Option<i64>,
    waits: bool,
}

impl<'c> Log<'c> {
    pub(super) fn new(connection: &'c Connection, path: PathBuf) -> rusqlite::Result<Self> {
        let page_bytes = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(Self { connection, path, page_bytes, empty_in: None, waits: true })
    }

    pub(super) fn bytes(&self) -> ByteCount {
        file_bytes(&self.path)
    }

    /// Under the lock: whether the log is still the empty file that was synced. Somebody else may have filled and emptied it since, which
    /// is not on disk then.
    pub(super) fn is_as_synced(&self) -> rusqlite::Result<bool> {
        Ok(self.is_empty() && self.empty_in == Some(data_version(self.connection)?))
    }

    fn is_empty(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.len() == 0)
    }

    /// Puts what is in the log on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_data()
    }

    /// Where the whole log stands in the database already, the next writer would restart it and wait for the disk under the lock. So it
    /// is emptied before, if nobody reads it. Answers how long that held the write lock, if it did.
    pub(super) fn ready(&mut self) -> Option<Duration> {
        self.empty_in = None;
        let state = checkpoint(self.connection, "NOOP").ok()?;
        if state.is_busy || state.waiting() > 0 {
            return None;
        }
        let mut held = None;
        if !self.is_empty() {
            let since = Instant::now();
            let emptied = without_waiting(self.connection, || checkpoint(self.connection, "TRUNCATE"));
            held = Some(since.elapsed());
            if !emptied.is_ok_and(|state| !state.is_busy) {
                return held;
            }
        }
        // Until its emptiness and its name are on disk, a power cut may bring back an older log.
        let version = data_version(self.connection).ok()?;
        if self.is_empty() && self.sync_whole().is_ok() {
            self.empty_in = Some(version);
        }
        held
    }

    fn sync_whole(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()?;
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()
    }

    /// Before the lock is taken: whether the next transaction may do without any sync, provided that the log is still empty under the
    /// lock. The caller ends that with [`Log::wait_again`].
    pub(super) fn trust_emptiness(&mut self) -> rusqlite::Result<bool> {
        if self.empty_in.is_some() {
            self.connection.pragma_update(None, "synchronous", "OFF")?;
            self.waits = false;
        }
        Ok(self.empty_in.is_some())
    }

    /// Outside a transaction: the next one waits for the disk where SQLite says so.
    pub(super) fn wait_again(&mut self) -> rusqlite::Result<()> {
        self.empty_in = None;
        if !self.waits {
            self.connection.pragma_update(None, "synchronous", "NORMAL")?;
            self.waits = true;
        }
        Ok(())
    }

    /// Whether as much waits in the log as OpenCode lets it grow.
    pub(super) fn is_worth_moving(&self) -> bool {
        // NOOP only counts (sqlite.org/pragma.html#pragma_wal_checkpoint).
        checkpoint(self.connection, "NOOP").map_or(true, |state| state.waiting() >= MOVED_FRAMES)
    }

    /// Moves what no reader holds. Blocks neither writers nor readers.
    pub(super) fn move_into_database(&self) -> Result<(), LockError> {
        checkpoint(self.connection, "PASSIVE").map(drop)
    }

    /// A log beyond its limit must have been moved whole and let go by its readers before more is written to it.
    pub(super) fn ensure_small(&self, bytes_max: ByteCount, wait: Duration) -> Result<(), LockError> {
        if self.bytes() <= bytes_max {
            return Ok(());
        }
        let state = checkpoint(self.connection, "PASSIVE")?;
        if state.frames.saturating_mul(self.page_bytes.into()) <= bytes_max.get() {
            return Ok(());
        }
        retry_restart(self.connection, "RESTART", wait)?
            .then_some(())
            .ok_or_else(|| LockError::LogPinned { log_bytes: self.bytes() })
    }
}

/// What a truncating checkpoint achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LogReclaim {
    /// Size of the log file before.
    pub log_bytes_before: ByteCount,
    /// Size of the log file after.
    pub log_bytes_after: ByteCount,
}

/// Moves the whole write-ahead log into the database and cuts the log file, waiting at most `wait` for readers and writers.
///
/// # Errors
/// [`LockError::LogPinned`] where a reader holds the log to the end of the wait: the log keeps its size, nothing is lost, and the same
/// call succeeds after the reader has gone. Any error of SQLite.
pub fn reclaim_log(database: &WriteDatabase, wait: Duration) -> Result<LogReclaim, LockError> {
    let log_path = database.file().beside("-wal");
    let log_bytes_before = file_bytes(&log_path);
    checkpoint(database.connection(), "PASSIVE")?;
    if !retry_restart(database.connection(), "TRUNCATE", wait)? {
        return Err(LockError::LogPinned { log_bytes: file_bytes(&log_path) });
    }
    Ok(LogReclaim { log_bytes_before, log_bytes_after: file_bytes(&log_path) })
}

struct LogState {
    is_busy: bool,
    /// Pages in the log.
    frames: u64,
    /// Of those, pages that stand in the database too.
    moved: u64,
}

impl LogState {
    fn waiting(&self) -> u64 {
        self.frames.saturating_sub(self.moved)
    }
}

fn checkpoint(connection: &Connection, mode: &'static str) -> Result<LogState, LockError> {
    let answer = connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        // Both are -1 without a write-ahead log.
        let count = |at| row.get::<_, i64>(at).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(LogState { is_busy: row.get(0)?, frames: count(1)?, moved: count(2)? })
    });
    match answer.map_err(LockError::of) {
        // Another checkpoint runs: the log is moved by it.
        Err(LockError::Busy) => Ok(LogState { is_busy: true, frames: 0, moved: 0 }),
        other => other,
    }
}

/// Tries a checkpoint of `mode` until it is not busy or `wait` is over. Each try waits for nobody: a restarting checkpoint holds the
/// write lock while it waits for readers, so the waiting is done here, without a lock; and what a reader has let go meanwhile is moved by
/// a passive one, since a restarting one holds the lock for its syncs too.
fn retry_restart(connection: &Connection, mode: &'static str, wait: Duration) -> Result<bool, LockError> {
    const PAUSE: Duration = Duration::from_millis(20);
    let since = Instant::now();
    without_waiting(connection, || {
        loop {
            let state = checkpoint(connection, "PASSIVE")?;
            if state.waiting() == 0 && !state.is_busy && !checkpoint(connection, mode)?.is_busy {
                return Ok(true);
            }
            if since.elapsed() >= wait {
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
    })
}

/// Runs `body` with a busy timeout of zero.
fn without_waiting<T>(
    connection: &Connection,
    body: impl FnOnce() -> Result<T, LockError>,
) -> Result<T, LockError> {
    let timeout_ms: u32 = connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0))?;
    connection.busy_timeout(Duration::ZERO)?;
    let outcome = body();
    connection.busy_timeout(Duration::from_millis(timeout_ms.into()))?;
    outcome
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

fn file_bytes(path: &Path) -> ByteCount {
    ByteCount::new(fs::metadata(path).map_or(0, |found| found.len()))
}
