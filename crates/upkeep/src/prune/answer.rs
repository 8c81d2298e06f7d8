//! What a prune answers, and how it fails.

use headwater_prune::{KeptReason, PruneReceipt};
use headwater_wire::code::BlockedReason;
use serde::{Serialize, Serializer};

use crate::fence::{Refusal, Unsupported};
use crate::lock::LockError;
use crate::state::{StateError, StateErrorKind};
use crate::undo::ArchiveError;

/// The answer to a request (P1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is done: by this call, or by an earlier one with the same request.
    Pruned(PruneReceipt),
    /// Nothing was changed.
    Blocked(Blocked),
}

/// Why nothing was changed: the code that crosses a process, and the detail behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{reason}: {why}")]
pub struct Blocked {
    /// The code.
    pub reason: BlockedReason,
    /// The detail.
    pub why: Why,
}

/// The detail of a [`Blocked`]. Serialised as one kebab-case name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// A session, message or item is in a state that forbids it.
    #[error(transparent)]
    Kept(KeptReason),
    /// The session stands in another directory, project or workspace than the caller believes.
    #[error("the session was moved")]
    Moved,
    /// The database is not one that this program writes.
    #[error(transparent)]
    Unsupported(Unsupported),
    /// Another process holds the write lock.
    #[error("another process holds the write lock")]
    Busy,
    /// What the servers said was too old each time when the write lock was had.
    #[error(
        "servers were slow to answer or other programs kept the write lock busy: each time the answers were too old when the lock was had"
    )]
    AskedTooLongAgo,
    /// Another prune of the same database is running.
    #[error("another prune of the same database is running")]
    OtherPrune,
    /// The write-ahead log is at its limit and a reader holds it.
    #[error("a reader holds the write-ahead log")]
    LogPinned,
    /// A position that is not one of a removable item.
    #[error("an index names no item that may be removed")]
    NoSuchItem,
}

impl Why {
    /// Whether it holds for every message of the database at this moment: to try the next one would be to wait the same wait again.
    pub(super) fn is_about_database(self) -> bool {
        match self {
            Self::Unsupported(_)
            | Self::Busy
            | Self::AskedTooLongAgo
            | Self::OtherPrune
            | Self::LogPinned => true,
            Self::Kept(_) | Self::Moved | Self::NoSuchItem => false,
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Kept(reason) => reason.serialize(serializer),
            Self::Moved => serializer.serialize_str("moved"),
            Self::Unsupported(_) => serializer.serialize_str("unsupported-storage"),
            Self::Busy => serializer.serialize_str("busy"),
            Self::AskedTooLongAgo => serializer.serialize_str("asked-too-long-ago"),
            Self::OtherPrune => serializer.serialize_str("other-prune"),
            Self::LogPinned => serializer.serialize_str("log-pinned"),
            Self::NoSuchItem => serializer.serialize_str("no-such-item"),
        }
    }
}

impl From<Why> for Blocked {
    fn from(why: Why) -> Self {
        let reason = match why {
            Why::Kept(reason) => code(reason),
            Why::Moved => BlockedReason::Conflict,
            Why::Unsupported(_) => BlockedReason::UnsupportedStorage,
            Why::Busy | Why::AskedTooLongAgo | Why::OtherPrune | Why::LogPinned => {
                BlockedReason::MaintenanceRequired
            }
            Why::NoSuchItem => BlockedReason::NotDeletable,
        };
        Self { reason, why }
    }
}

impl From<KeptReason> for Blocked {
    fn from(reason: KeptReason) -> Self {
        Why::Kept(reason).into()
    }
}

impl From<Refusal> for Blocked {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Kept(reason) => Why::Kept(reason),
            Refusal::Unsupported(unsupported) => Why::Unsupported(unsupported),
            Refusal::Moved => Why::Moved,
            Refusal::AskedTooLongAgo => Why::AskedTooLongAgo,
        }
        .into()
    }
}

/// The code of P1 for a reason. A state that passes by itself asks for patience, one that does not is final.
fn code(reason: KeptReason) -> BlockedReason {
    match reason {
        KeptReason::Changed => BlockedReason::Conflict,
        KeptReason::Gone | KeptReason::OwnedElsewhere => BlockedReason::Unavailable,
        KeptReason::NotCompletedAssistant
        | KeptReason::ToolUnfinished
        | KeptReason::UnknownKind
        | KeptReason::Unreadable
        | KeptReason::Oversized
        | KeptReason::OversizedRow
        | KeptReason::NewestTurn
        | KeptReason::AfterCompaction
        | KeptReason::Pinned
        | KeptReason::OnlyCopy => BlockedReason::NotDeletable,
        // Also what later versions add: not at this moment.
        KeptReason::Executing
        | KeptReason::Compacting
        | KeptReason::RevertStaged
        | KeptReason::InputWaiting
        | KeptReason::EventsRetained
        | KeptReason::NotSettled
        | KeptReason::Interrupted
        | KeptReason::LastUseImplausible
        | KeptReason::Archived
        | KeptReason::BrokenTree
        | KeptReason::ReferredTo
        | _ => BlockedReason::MaintenanceRequired,
    }
}

/// What a refusal means for a bulk operation: one session stays, or everything ends.
///
/// # Errors
/// Why everything ends.
pub(super) fn of_session(refusal: Refusal) -> Result<KeptReason, Why> {
    match refusal {
        Refusal::Kept(reason) => Ok(reason),
        Refusal::Moved => Ok(KeptReason::Changed),
        Refusal::Unsupported(unsupported) => Err(Why::Unsupported(unsupported)),
        Refusal::AskedTooLongAgo => Err(Why::AskedTooLongAgo),
    }
}

/// Why a prune failed. What it was about to change is unchanged, unless the kind says otherwise.
#[derive(Debug, thiserror::Error)]
#[error("the prune failed: {kind}")]
pub struct PruneError {
    /// What failed.
    #[source]
    pub kind: PruneErrorKind,
}

/// What failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PruneErrorKind {
    /// The state file. Where the change is committed already, its receipt is found by the next prune of the same database.
    #[error(transparent)]
    State(#[from] StateError),
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The lock, or the write-ahead log.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The selection does not fit the database any more.
    #[error(transparent)]
    Plan(crate::plan::PlanError),
    /// A receipt in the database is not one that this program writes.
    #[error("a stored receipt is damaged")]
    DamagedReceipt,
    /// SQLite reports something else.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for PruneErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        match LockError::of(error) {
            LockError::Sqlite(error) => Self::Sqlite(error),
            lock @ (LockError::Busy | LockError::LogPinned { .. } | LockError::NotDurable(_)) => {
                Self::Lock(lock)
            }
        }
    }
}

impl<K: Into<PruneErrorKind>> From<K> for PruneError {
    fn from(kind: K) -> Self {
        Self { kind: kind.into() }
    }
}

impl PruneErrorKind {
    /// The answer that this failure is, where it is one: somebody else is at work (P8).
    pub(crate) fn blocked(&self) -> Option<Why> {
        match self {
            Self::Lock(LockError::Busy) => Some(Why::Busy),
            Self::Lock(LockError::LogPinned { .. }) => Some(Why::LogPinned),
            Self::State(StateError { kind: StateErrorKind::Busy, .. }) => Some(Why::OtherPrune),
            Self::Lock(LockError::Sqlite(_) | LockError::NotDurable(_))
            | Self::State(_)
            | Self::Archive(_)
            | Self::Plan(_)
            | Self::DamagedReceipt
            | Self::Sqlite(_) => None,
        }
    }
}
