//! Short write locks on a database in use (P8a).
//!
//! OpenCode waits for locks on its only thread, and a lock held over five seconds kills the running turn (fact A8). So every write
//! goes through [`ShortLocks`]: transactions that aim at [`LockPolicy::target`], as long a pause after each as it held the lock,
//! checkpoints and syncs outside the lock, and a report of what it cost the other processes.
//!
//! A commit does not wait for the disk: beside a program that writes a lot, a sync takes seconds, and the lock would be held all the time.
//! [`ShortLocks::make_durable`] waits after the lock is given back.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use headwater_model::ByteCount;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use serde::Serialize;

use crate::units::iec;
use crate::{LOCK_WAIT, WriteDatabase};

mod log;

use log::Log;
pub use log::{LogReclaim, reclaim_log};

/// Why a lock could not be had or a transaction not be committed. Nothing of the transaction is in the database, unless the kind says
/// otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process holds the write lock and the allowed wait is over.
    #[error("another process holds the write lock")]
    Busy,
    /// The write-ahead log cannot be reused: a reader holds it. The log is never deleted or cut by hand.
    #[error("not reclaimed: a reader holds the log ({})", iec(.log_bytes.get()))]
    LogPinned {
        /// Size of the log file.
        log_bytes: ByteCount,
    },
    /// What is committed is in the write-ahead log, but the log cannot be put on disk: a power cut may take it back.
    #[error("the write-ahead log cannot be synced: {0}")]
    NotDurable(io::Error),
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
    /// For commands and batches: waits [`LOCK_WAIT`] for a writer and for readers of the log.
    pub const BATCH: Self = Self {
        target: Duration::from_millis(50),
        wait: LOCK_WAIT,
        log_bytes_max: ByteCount::from_mib(32),
        log_wait: LOCK_WAIT,
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
    log: Option<Log<'c>>,
    policy: LockPolicy,
    report: LockReport,
    free: Option<FreeTime>,
    is_prepared: bool,
    commit_estimate: Duration,
}

#[derive(Clone, Copy, Debug)]
struct FreeTime {
    since: Instant,
    at_least: Duration,
}

impl<'c> ShortLocks<'c> {
    /// Sets the waiting time and the durability of commits on the connection of `database`; no lock is taken.
    ///
    /// In write-ahead-log mode commits are as OpenCode's own (`synchronous=NORMAL`): whole after a power cut, but on disk only after a
    /// checkpoint or [`ShortLocks::make_durable`]. In rollback mode a commit that does not sync could damage the database, so it does.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn new(database: &'c WriteDatabase, policy: LockPolicy) -> Result<Self, LockError> {
        let connection = database.connection();
        connection.busy_timeout(policy.wait)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let log = if mode == "wal" {
            Some(Log::new(connection, database.file().beside("-wal"))?)
        } else {
            connection.pragma_update(None, "synchronous", "FULL")?;
            None
        };
        let (report, commit_estimate) = (LockReport::default(), Duration::ZERO);
        Ok(Self { connection, log, policy, report, free: None, is_prepared: false, commit_estimate })
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
        if !self.is_prepared {
            self.prepare()?;
        }
        self.is_prepared = false;
        let (transaction, since) = self.begin()?;
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
        self.report.transactions += 1;
        self.account(since.elapsed());
        if let Some(log) = &mut self.log {
            log.wait_again().map_err(LockError::from)?;
        }
        if is_committed {
            self.tend_log();
        }
        outcome
    }

    /// Does what may take long before the lock is taken: waits until the log is small and the lock has been free for long enough, and
    /// lets the disk catch up. [`ShortLocks::run`] does it too; who asks others before the lock calls this before it asks, so that the
    /// answers are fresh.
    ///
    /// # Errors
    /// [`LockError::LogPinned`], and any error of SQLite.
    pub fn prepare(&mut self) -> Result<(), LockError> {
        if let Some(log) = &mut self.log {
            log.ensure_small(self.policy.log_bytes_max, self.policy.log_wait)?;
        }
        if let Some(held) = self.log.as_mut().and_then(Log::ready) {
            self.account(held);
        }
        self.leave_free();
        self.is_prepared = true;
        Ok(())
    }

    /// Takes the write lock, and says when it was had.
    fn begin(&mut self) -> Result<(Transaction<'c>, Instant), LockError> {
        let begun = self.begin_trusting();
        // Without a transaction nothing may go without syncs: a checkpoint that does not sync the log first can damage the database.
        if let (Err(_), Some(log)) = (&begun, &mut self.log) {
            log.wait_again()?;
        }
        begun
    }

    /// The same; where it fails, commits and checkpoints may be left not to wait for the disk.
    fn begin_trusting(&mut self) -> Result<(Transaction<'c>, Instant), LockError> {
        let connection = self.connection;
        let begin =
            || Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(LockError::of);
        if let Some(log) = &mut self.log
            && log.trust_emptiness()?
        {
            let transaction = begin()?;
            let since = Instant::now();
            if log.is_as_synced()? {
                return Ok((transaction, since));
            }
            // Somebody has written to the log since it was looked at.
            drop(transaction);
            log.wait_again()?;
        }
        let transaction = begin()?;
        Ok((transaction, Instant::now()))
    }

    /// Puts everything that is committed on disk, whoever committed it; takes no lock and blocks nobody. Call it before anything
    /// outside the database is told that a change was made.
    ///
    /// The log is synced through a descriptor of its own. That loses no lock: SQLite locks the database file and the log's index, never
    /// the log (sqlite.org/walformat.html, section 2.3). A checkpoint would sync it too, but not while a reader or another checkpoint
    /// is in its way.
    ///
    /// # Errors
    /// [`LockError::NotDurable`]. What is committed stays committed and may be lost in a power cut.
    pub fn make_durable(&self) -> Result<(), LockError> {
        self.log.as_ref().map_or(Ok(()), |log| log.sync().map_err(LockError::NotDurable))
    }

    /// Moves what is left in the log, at the end of an operation.
    pub fn settle(&mut self) {
        let Some(log) = &self.log else { return };
        self.report.log_bytes_max = self.report.log_bytes_max.max(log.bytes());
        if log.move_into_database().is_err() {
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
        let Some(log) = &self.log else { return };
        self.report.log_bytes_max = self.report.log_bytes_max.max(log.bytes());
        if log.is_worth_moving() {
            self.settle();
        }
    }
}

#[cfg(test)]
mod tests;
