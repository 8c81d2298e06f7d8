//! What remains on record of a prune (P6): hashes, counts and ids, no content.

use headwater_model::{ByteCount, ContentRevision, MessageId, SessionId, UnixMillis};
use serde::{Deserialize, Serialize};

use crate::request::RequestKey;

/// Which storage a message is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// OpenCode 1.x: `message` and `part`.
    V1,
    /// OpenCode 2.x: `session_message`.
    V2,
}

/// How many items of each kind went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedItems {
    /// Tool calls.
    pub tools: u32,
    /// Reasoning items.
    pub reasoning: u32,
}

impl RemovedItems {
    /// All of them.
    pub const fn total(self) -> u32 {
        self.tools.saturating_add(self.reasoning)
    }
}

/// The proof that a prune was done, committed with it. Holds no content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneReceipt {
    /// The key of the request.
    pub key: RequestKey,
    /// The session.
    pub session: SessionId,
    /// The message.
    pub message: MessageId,
    /// The revision before, which is the previewed one.
    pub before: ContentRevision,
    /// The revision after.
    pub after: ContentRevision,
    /// What went.
    pub removed: RemovedItems,
    /// Bytes of row data that went.
    pub bytes: ByteCount,
    /// Where the message is stored.
    pub layout: Layout,
    /// When it was done.
    pub time: UnixMillis,
}
