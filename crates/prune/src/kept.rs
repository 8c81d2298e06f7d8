//! Why something stays although it was selected.

use serde::{Deserialize, Serialize};

/// Largest row that is deleted while the database is in use: following the chain of its pages keeps the write lock for 0.65 s per GiB even
/// where all of them are in memory (P8a).
pub const ROW_BYTES_MAX: u64 = 640 << 20;

/// Why a session, a message or a row stays (P4, P8, P15). Each is one sentence of the plan and one value of the receipt.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum KeptReason {
    /// The session runs, or a claim says that it will be resumed.
    #[error("the session is executing")]
    Executing,
    /// The session is being compacted.
    #[error("the session is being compacted")]
    Compacting,
    /// A revert is staged.
    #[error("a revert is staged")]
    RevertStaged,
    /// Input waits for the session.
    #[error("input is waiting for the session")]
    InputWaiting,
    /// The event aggregate is owned by another machine.
    #[error("the event aggregate is owned elsewhere")]
    OwnedElsewhere,
    /// Event rows of the session are retained (2.x).
    #[error("event rows of the session are retained")]
    EventsRetained,
    /// A row of the session changed within the settling time.
    #[error("the session changed a moment ago")]
    NotSettled,
    /// The turn was interrupted and nothing says that it is over.
    #[error("the newest turn is interrupted")]
    Interrupted,
    /// Only completed assistant messages lose technical content.
    #[error("not a completed assistant message")]
    NotCompletedAssistant,
    /// A tool of the message is unfinished.
    #[error("a tool of the message is unfinished")]
    ToolUnfinished,
    /// A part or content item is of an unknown kind or shape.
    #[error("an item of the message is of an unknown kind")]
    UnknownKind,
    /// A row of the message cannot be read as JSON.
    #[error("a row of the message is not valid JSON")]
    Unreadable,
    /// The stored message is larger than an online prune may rewrite (P2).
    #[error("the message is larger than 16 MiB")]
    Oversized,
    /// A row is larger than a short lock can delete ([`ROW_BYTES_MAX`]); a rebuild removes it.
    #[error("a row is larger than 640 MiB: only a rebuild removes it")]
    OversizedRow,
    /// The message is in the newest turn.
    #[error("the message is in the newest turn")]
    NewestTurn,
    /// The message stands after the last compaction.
    #[error("the message stands after the last compaction")]
    AfterCompaction,
    /// The session is pinned.
    #[error("the session is pinned")]
    Pinned,
    /// The stored content has another revision than the preview.
    #[error("changed since the preview")]
    Changed,
    /// The row is gone.
    #[error("gone since the preview")]
    Gone,
    /// The last use is zero, negative or in the future, so that its age is a guess.
    #[error("the last use is not a plausible time")]
    LastUseImplausible,
    /// The session is archived and the caller did not ask for archived sessions.
    #[error("the session is archived")]
    Archived,
    /// The parent session is missing or the parents form a loop.
    #[error("the parent session is missing or the parents form a loop")]
    BrokenTree,
    /// A table that is not OpenCode's refers to the session.
    #[error("a table that is not known refers to the session")]
    ReferredTo,
    /// The rows may be the only copy of a conversation.
    #[error("may be the only copy")]
    OnlyCopy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named_with_their_figures() {
        let row = KeptReason::OversizedRow.to_string();
        assert!(row.contains(&format!("larger than {} MiB", ROW_BYTES_MAX >> 20)), "{row}");
        let message = KeptReason::Oversized.to_string();
        let bytes_max = headwater_wire::limits::MESSAGE_BYTES_MAX;
        assert!(message.contains(&format!("larger than {} MiB", bytes_max >> 20)), "{message}");
    }
}
