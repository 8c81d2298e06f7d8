//! Short write locks on a database in use (P8a).
//!
//! OpenCode waits for locks on its only thread, and a lock held over five seconds kills the running turn (fact A8). So every write
//! goes through [`ShortLocks`]: transactions that aim at [`LockPolicy::target`], as long a pause after each as it held the lock,
//! checkpoints outside the lock, and a report of what it cost the other processes.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use headwater_model::ByteCount;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use serde::Serialize;

use crate::WriteDatabase;

/// Why a lock could not be had or a transaction not be committed. Nothing of the transaction is in the database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process holds the write lock and the allowed wait is over.
    #[error("another process holds the write lock")]
    Busy,
    /// The write-ahead log cannot be reused: a reader holds it. The log is never deleted or cut by hand.
    #[error("not reclaimed: a reader holds the log ({log_bytes} bytes)")]
    LogPinned {
        /// Size of the log file.
        log_bytes: ByteCount,
    },
    /// SQLite reports something else.
    #[error("the transaction failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl LockError {
    /// Classifies an error of SQLite: busy and locked become [`LockError::Busy`].
    pub fn of(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Sqlite(error),
        }
    }
}

/// How long locks may be held and waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockPolicy {
    /// What one transaction aims at, commit included. Work inside it asks [`Held::is_due`] after each row.
    pub target: Duration,
    /// How long to wait for another writer. Zero answers at once (RPC).
    pub wait: Duration,
    /// Largest write-ahead log left behind by a transaction before the next one may begin.
    pub log_bytes_max: ByteCount,
    /// How long to wait for readers that keep the log from being reused.
    pub log_wait: Duration,
}

impl LockPolicy {
    /// For commands and batches: waits up to ten seconds for a writer and for readers of the log.
    pub const BATCH: Self = Self {
        target: Duration::from_millis(50),
        wait: Duration::from_secs(10),
        log_bytes_max: ByteCount::from_mib(32),
        log_wait: Duration::from_secs(10),
    };

    /// For requests from a running program: a busy database is an answer and not a reason to wait (P8).
    pub const IMMEDIATE: Self = Self { wait: Duration::ZERO, log_wait: Duration::ZERO, ..Self::BATCH };
}

/// What the locks of one operation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockReport {
    /// Transactions that held the write lock.
    pub transactions: u64,
    /// The longest time the lock was held, in microseconds, commit included.
    pub longest_lock_us: u64,
    /// The time the lock was held in all, in microseconds.
    pub total_lock_us: u64,
    /// The largest size of the write-ahead log seen after a transaction.
    pub log_bytes_max: ByteCount,
    /// Checkpoints that SQLite could not do; what they were to move stays in the log.
    pub failed_checkpoints: u64,
}

/// Whether the body of a transaction wants its changes kept.
#[derive(Debug)]
pub enum Step<T> {
    /// Commit and answer.
    Commit(T),
    /// Undo every change of the transaction and answer.
    Rollback(T),
}

/// The write lock, held. Lives as long as the body of one transaction.
#[derive(Debug)]
pub struct Held<'h> {
    connection: &'h Connection,
    since: Instant,
    due_after: Duration,
}

impl Held<'_> {
    /// The connection inside the transaction.
    pub fn connection(&self) -> &Connection {
        self.connection
    }

    /// Whether the transaction should end now to meet its target, given what commits have cost so far.
    pub fn is_due(&self) -> bool {
        self.since.elapsed() >= self.due_after
    }
}

/// Takes the write lock of one database again and again, each time shortly.
#[derive(Debug)]
pub struct ShortLocks<'c> {
    connection: &'c Connection,
    log_path: PathBuf,
    page_bytes: u32,
    policy: LockPolicy,
    report: LockReport,
    free: Option<FreeTime>,
    commit_estimate: Duration,
    synchronous: &'static str,
}

#[derive(Clone, Copy, Debug)]
struct FreeTime {
    since: Instant,
    at_least: Duration,
}

impl<'c> ShortLocks<'c> {
    /// Sets the waiting time on the connection of `database`; no lock is taken.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn new(database: &'c WriteDatabase, policy: LockPolicy) -> Result<Self, LockError> {
        let connection = database.connection();
        connection.busy_timeout(policy.wait)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(Self {
            connection,
            log_path: database.file().beside("-wal"),
            page_bytes: connection.query_row("PRAGMA page_size", [], |row| row.get(0))?,
            policy,
            report: LockReport::default(),
            free: None,
            commit_estimate: Duration::ZERO,
            synchronous: "",
        })
    }

    /// Runs `body` under `BEGIN IMMEDIATE` and commits or rolls back as it says; an error rolls back.
    ///
    /// Before it takes the lock it waits until the lock has been free for as long as the previous transaction held it; whatever the
    /// caller did in between counts as free time. After a commit it moves the log into the database, outside the lock.
    ///
    /// # Errors
    /// [`LockError::Busy`] where the lock cannot be had within the policy's wait, [`LockError::LogPinned`] **before** the body runs where
    /// the log is beyond its limit and cannot be reused, what `body` returns, and any error of SQLite.
    pub fn run<T, E: From<LockError>>(
        &mut self,
        body: impl FnOnce(&Held<'_>) -> Result<Step<T>, E>,
    ) -> Result<T, E> {
        self.ensure_log_is_small()?;
        self.leave_free();
        let transaction = Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate)
            .map_err(LockError::of)?;
        let since = Instant::now();
        // However long commits take, some work must fit between two of them.
        let due_after = self.policy.target.saturating_sub(self.commit_estimate).max(self.policy.target / 2);
        let outcome = body(&Held { connection: &transaction, since, due_after });
        let before_commit = Instant::now();
        let (outcome, is_committed) = match outcome {
            Ok(Step::Commit(answer)) => match transaction.commit() {
                Ok(()) => (Ok(answer), true),
                Err(error) => (Err(LockError::of(error).into()), false),
            },
            Ok(Step::Rollback(answer)) => match transaction.rollback() {
                Ok(()) => (Ok(answer), false),
                Err(error) => (Err(LockError::of(error).into()), false),
            },
            Err(error) => {
                drop(transaction);
                (Err(error), false)
            }
        };
        if is_committed {
            self.commit_estimate = (self.commit_estimate + before_commit.elapsed()) / 2;
        }
        self.account(since.elapsed());
        if is_committed {
            self.tend_log();
        }
        outcome
    }

    /// Lets commits wait for the disk only at the next checkpoint, as OpenCode itself does (`synchronous=NORMAL`): for changes whose
    /// loss in a power cut means nothing but that they are to be made again. Short locks, because no commit syncs.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn durable_at_checkpoint(&mut self) -> Result<(), LockError> {
        self.set_synchronous("NORMAL")
    }

    /// Lets every commit be on disk when it returns. The initial state.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn durable_at_commit(&mut self) -> Result<(), LockError> {
        self.set_synchronous("FULL")
    }

    fn set_synchronous(&mut self, mode: &'static str) -> Result<(), LockError> {
        if self.synchronous != mode {
            self.connection.pragma_update(None, "synchronous", mode)?;
            self.synchronous = mode;
        }
        Ok(())
    }

    /// Moves what is left in the log, at the end of an operation. Afterwards everything committed is on disk, unless a reader holds
    /// the log and commits were not durable by themselves.
    pub fn settle(&mut self) {
        self.report.log_bytes_max = self.report.log_bytes_max.max(file_bytes(&self.log_path));
        // Passive: blocks neither writers nor readers, and moves what no reader holds.
        if checkpoint(self.connection, "PASSIVE").is_err() {
            self.report.failed_checkpoints += 1;
        }
    }

    /// What the locks have cost so far.
    pub fn report(&self) -> LockReport {
        self.report
    }

    /// The connection, for statements outside the lock.
    pub fn connection(&self) -> &'c Connection {
        self.connection
    }

    fn account(&mut self, held: Duration) {
        let held_us = u64::try_from(held.as_micros()).unwrap_or(u64::MAX);
        self.report.transactions += 1;
        self.report.longest_lock_us = self.report.longest_lock_us.max(held_us);
        self.report.total_lock_us = self.report.total_lock_us.saturating_add(held_us);
        self.free = Some(FreeTime { since: Instant::now(), at_least: held });
    }

    fn leave_free(&mut self) {
        if let Some(free) = self.free.take() {
            thread::sleep(free.at_least.saturating_sub(free.since.elapsed()));
        }
    }

    /// Moves the log when it has grown by as much as OpenCode lets it grow (1000 pages), outside the lock. Not after every transaction:
    /// a checkpoint syncs twice, and tiny transactions share one. The commit stands whether it succeeds or not; a log that does not
    /// shrink is found before the next transaction.
    fn tend_log(&mut self) {
        self.report.log_bytes_max = self.report.log_bytes_max.max(file_bytes(&self.log_path));
        // NOOP only counts (sqlite.org/pragma.html#pragma_wal_checkpoint).
        match checkpoint(self.connection, "NOOP") {
            Ok(state) if state.waiting() < MOVED_FRAMES => {}
            Ok(_) | Err(_) => self.settle(),
        }
    }

    /// A log beyond its limit must have been moved whole and let go by its readers before more is written to it.
    fn ensure_log_is_small(&self) -> Result<(), LockError> {
        if file_bytes(&self.log_path) <= self.policy.log_bytes_max {
            return Ok(());
        }
        let state = checkpoint(self.connection, "PASSIVE")?;
        if state.frames.saturating_mul(self.page_bytes.into()) <= self.policy.log_bytes_max.get() {
            return Ok(());
        }
        retry_restart(self.connection, "RESTART", self.policy.log_wait)?
            .then_some(())
            .ok_or_else(|| LockError::LogPinned { log_bytes: file_bytes(&self.log_path) })
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

/// Pages that wait in the log before they are moved.
const MOVED_FRAMES: u64 = 1000;

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
/// write lock while it waits for readers, so the waiting is done here, without a lock.
fn retry_restart(connection: &Connection, mode: &'static str, wait: Duration) -> Result<bool, LockError> {
    const PAUSE: Duration = Duration::from_millis(20);
    let since = Instant::now();
    let timeout_ms: u32 = connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0))?;
    connection.busy_timeout(Duration::ZERO)?;
    let outcome = loop {
        match checkpoint(connection, mode) {
            Ok(state) if !state.is_busy => break Ok(true),
            Ok(_) if since.elapsed() >= wait => break Ok(false),
            Ok(_) => thread::sleep(PAUSE),
            Err(error) => break Err(error),
        }
    };
    connection.busy_timeout(Duration::from_millis(timeout_ms.into()))?;
    outcome
}

fn file_bytes(path: &std::path::Path) -> ByteCount {
    ByteCount::new(fs::metadata(path).map_or(0, |found| found.len()))
}

#[cfg(test)]
mod tests;
