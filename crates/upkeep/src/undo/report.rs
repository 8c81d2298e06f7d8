//! What an undo did, and how it fails.

use std::collections::BTreeMap;

use headwater_prune::{Class, KeptReason};
use serde::Serialize;

use super::archive::ArchiveError;
use crate::fence::Refusal;
use crate::lock::{LockError, LockReport};
use crate::state::StateError;

/// What an archive holds, and an undo would put back as far as the rows are as the prunes left them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UndoPreview {
    /// Units in the archive: a pruned message, a batch of event rows, a part of a session tree.
    pub units: u64,
    /// Rows in it.
    pub rows: u64,
    /// The rows by the class that removed them.
    pub classes: BTreeMap<Class, u64>,
    /// Whether its last frame is unfinished and left out.
    pub had_torn_end: bool,
}

/// What an undo did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UndoReport {
    /// Units in the archive: a pruned message, a batch of event rows, a part of a session tree.
    pub units: u64,
    /// Units of which something was restored.
    pub units_restored: u64,
    /// Rows that are back.
    pub rows_restored: u64,
    /// Rows that were left alone, by reason. Rows of a unit that is restored whole or not at all count each.
    pub rows_left: BTreeMap<LeftAlone, u64>,
    /// Whether the last frame of the archive was unfinished and left out.
    pub had_torn_end: bool,
    /// Whether the caller stopped it before the end.
    pub is_cancelled: bool,
    /// What it cost other processes.
    pub locks: LockReport,
}

/// Why archived rows were not restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LeftAlone {
    /// The row is there: it was never removed, or is back already.
    #[error("still there")]
    StillThere,
    /// What is stored is not what the prune left.
    #[error("changed since the prune")]
    Changed,
    /// The session, message or project that the row belongs to is gone.
    #[error("its parent is gone")]
    ParentGone,
    /// The table or a column is not in the database any more.
    #[error("the table has changed")]
    SchemaChanged,
    /// The session may not be written at this moment.
    #[error("the session is in use")]
    InUse,
    /// What the servers said was too old each time when the write lock was had.
    #[error("servers were slow to answer, or other programs kept the write lock busy")]
    AskedTooLongAgo,
    /// The session stands in another directory, project or workspace.
    #[error("the session was moved")]
    Moved,
}

impl From<Refusal> for LeftAlone {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Kept(KeptReason::Gone) => Self::ParentGone,
            Refusal::Kept(_) => Self::InUse,
            Refusal::AskedTooLongAgo => Self::AskedTooLongAgo,
            Refusal::Moved => Self::Moved,
            Refusal::Unsupported(_) => Self::SchemaChanged,
        }
    }
}

/// Why an undo failed. Units restored before stay restored; the same undo again restores the rest.
#[derive(Debug, thiserror::Error)]
#[error("the undo failed: {kind}")]
pub struct UndoError {
    /// What failed.
    #[source]
    pub kind: UndoErrorKind,
}

/// What failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoErrorKind {
    /// The archive is not usable; nothing was restored from it.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The state file.
    #[error(transparent)]
    State(#[from] StateError),
    /// The lock, or the write-ahead log.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The caller stopped it before anything was restored.
    #[error("cancelled")]
    Cancelled,
}

impl From<rusqlite::Error> for UndoErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        Self::Lock(LockError::of(error))
    }
}

impl<K: Into<UndoErrorKind>> From<K> for UndoError {
    fn from(kind: K) -> Self {
        Self { kind: kind.into() }
    }
}
