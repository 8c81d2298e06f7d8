//! Why a rebuild, vacuum, backup or restore did not happen.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::OpenErrorKind;
use crate::holders::Holder;
use crate::os::LeaseRefused;
use crate::plan::PlanError;
use crate::units::iec;

/// An offline rewrite that did not happen. Unless the kind says otherwise the database is as it was.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", .path.display())]
pub struct RebuildError {
    /// The database, or the snapshot that was to be restored.
    pub path: PathBuf,
    /// What was in the way.
    #[source]
    pub kind: RebuildErrorKind,
}

/// What was in the way of an offline rewrite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RebuildErrorKind {
    /// The file cannot be opened as an OpenCode database.
    #[error("cannot open the database: {0}")]
    Open(OpenErrorKind),
    /// Locks, leases and the exchange of names are only safe on a local file system.
    #[error(
        "on a file system of type {file_system}, where locks cannot be relied on; copy the database to a local disk first"
    )]
    NetworkFileSystem {
        /// Its name.
        file_system: &'static str,
    },
    /// Another program copies the pages of this file elsewhere and would mix old pages with new ones.
    #[error("replicated page by page ({} is beside it); stop the replication and remove its state first", .beside.display())]
    Replicated {
        /// What was found.
        beside: PathBuf,
    },
    /// The file has more than one name; the exchange would leave the others on the old content.
    #[error("the file has {names} names (hard links); remove the others first")]
    HardLinks {
        /// How many names.
        names: u64,
    },
    /// A process works on a log that has lost its name: its rows are in no file that can be found.
    #[error("a deleted write-ahead log is in use{holders}; stop that process first")]
    DeletedLog {
        /// Who.
        holders: Named,
    },
    /// Somebody has the database open.
    #[error("the database is open elsewhere{holders}; close it first")]
    InUse {
        /// Who, as far as the system tells.
        holders: Named,
    },
    /// The lock is there, but not the proof that nobody is left behind, and copying back in place was not allowed.
    #[error("cannot take the file over by exchange ({reason}); copying back in place would work here")]
    NoLease {
        /// Why.
        reason: LeaseRefused,
    },
    /// The file system cannot exchange two names.
    #[error("the file system cannot exchange two names; copying back in place would work here")]
    NoExchange,
    /// Too little would come free.
    #[error(
        "nothing to gain: {} in free pages, {} planned to go, of {}",
        iec(*.free_bytes), iec(*.planned_bytes), iec(*.file_bytes)
    )]
    NothingToGain {
        /// Bytes of free pages.
        free_bytes: u64,
        /// Bytes that the plan frees.
        planned_bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// The disk is too full.
    #[error("{} of free disk are needed, {} are there", iec(*.needed_bytes), iec(*.free_bytes))]
    NoRoom {
        /// Bytes needed beside the database.
        needed_bytes: u64,
        /// Bytes free.
        free_bytes: u64,
    },
    /// The database changed between the plan that was confirmed and the lock.
    #[error("changed since the plan was shown; look at the new plan first")]
    PlanChanged,
    /// The plan could not be made.
    #[error("{0}")]
    Plan(Box<PlanError>),
    /// The database holds something that would not survive.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// SQLite finds the database damaged.
    #[error("the database is damaged")]
    Damaged,
    /// The new file does not hold what it must. It is removed.
    #[error("the new file failed its verification: {0}")]
    Verification(String),
    /// The path names another file than at the start.
    #[error("another file took the path meanwhile")]
    Replaced,
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The new database is in place and works, but the disk did not confirm it; the old one is kept.
    #[error("the new database is in place, but the disk did not confirm it ({source}); the old one is kept as {}", .kept.display())]
    Unconfirmed {
        /// Where the old database is.
        kept: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// In place only: the new content is committed and every program that opens the database reads it, but its log could not be merged.
    #[error(
        "the new content is in place, but its log could not be merged and stays beside the database ({source})"
    )]
    Unmerged {
        /// Why.
        source: Box<RebuildErrorKind>,
    },
    /// Something is at the destination.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    /// Any other error of the file system.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Any other error of SQLite.
    #[error("{doing}: {source}")]
    Sqlite {
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// The processes found, sorted by pid; may be empty although there are some, for other users' processes hide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named(pub Vec<Holder>);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, holder) in self.0.iter().enumerate() {
            write!(f, "{} {} (pid {})", if index == 0 { " by" } else { "," }, holder.command, holder.pid)?;
        }
        Ok(())
    }
}

impl RebuildErrorKind {
    pub(crate) fn at(self, path: &std::path::Path) -> RebuildError {
        RebuildError { path: path.to_owned(), kind: self }
    }
}

/// Says what was being done when a call of the file system or of SQLite failed.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, RebuildErrorKind>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, RebuildErrorKind> {
        self.map_err(|source| RebuildErrorKind::Io { doing, source })
    }
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, RebuildErrorKind> {
        self.map_err(|source| RebuildErrorKind::Io { doing, source: source.into() })
    }
}

impl<T> Doing<T> for rusqlite::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, RebuildErrorKind> {
        self.map_err(|source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                RebuildErrorKind::Damaged
            }
            Some(rusqlite::ErrorCode::OperationInterrupted) => RebuildErrorKind::Cancelled,
            _ => RebuildErrorKind::Sqlite { doing, source },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_binary_units() {
        let gain =
            RebuildErrorKind::NothingToGain { free_bytes: 0, planned_bytes: 1536, file_bytes: 5 << 30 };
        assert_eq!(gain.to_string(), "nothing to gain: 0 B in free pages, 1.5 KiB planned to go, of 5.0 GiB");
        let room = RebuildErrorKind::NoRoom { needed_bytes: 3 << 20, free_bytes: 17 };
        assert_eq!(room.to_string(), "3.0 MiB of free disk are needed, 17 B are there");
    }
}
