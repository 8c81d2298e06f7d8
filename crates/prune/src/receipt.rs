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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_stored_in_one_form_and_reads_back() {
        let hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let receipt = PruneReceipt {
            key: hash.parse().unwrap(),
            session: SessionId::new("ses_1").unwrap(),
            message: MessageId::new("msg_1").unwrap(),
            before: hash.parse().unwrap(),
            after: hash.replace('0', "f").parse().unwrap(),
            removed: RemovedItems { tools: 2, reasoning: 1 },
            bytes: ByteCount::new(1234),
            layout: Layout::V1,
            time: UnixMillis::new(1_790_000_000_000),
        };
        let json = serde_json::to_string(&receipt).unwrap();
        let wanted = format!(
            r#"{{"key":"{hash}","session":"ses_1","message":"msg_1","before":"{hash}","after":"{}","removed":{{"tools":2,"reasoning":1}},"bytes":1234,"layout":"v1","time":1790000000000}}"#,
            receipt.after
        );
        assert_eq!(json, wanted);
        assert_eq!(serde_json::from_str::<PruneReceipt>(&json).unwrap(), receipt);
        assert_eq!(receipt.removed.total(), 3);
    }
}
