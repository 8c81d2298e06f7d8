//! What happened to one record.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::{MessageRecord, OrderKey, TurnRecord};

/// By what a selection sees a record, and where the record stands: what a receipt keeps of the state before a change (C5, C33).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The task the row named.
    pub task_id: Option<String>,
    /// The author of a message; none for a turn.
    pub author_type: Option<String>,
    /// Where it stood.
    pub order: OrderKey,
}

/// What happened to one record of the history that people see. Repeating an upsert replaces the record. A turn that is only reserved is not
/// part of that history: becoming visible is an upsert without a previous place, being hidden again a removal (C33).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The message stands in the session as given.
    MessageUpsert {
        /// The whole current row.
        record: Arc<MessageRecord>,
        /// Where it stood in this session; none where it was not in it.
        previous: Option<Place>,
    },
    /// The message is no longer in the session.
    MessageRemove {
        /// Where it stood; its key holds the id.
        previous: Place,
    },
    /// The turn stands in the session as given.
    TurnUpsert {
        /// The whole current row.
        record: Arc<TurnRecord>,
        /// Where it stood in this session; none where it was not in it.
        previous: Option<Place>,
    },
    /// The turn is no longer in the session's history.
    TurnRemove {
        /// Where it stood; its key holds the id.
        previous: Place,
    },
}

impl Operation {
    /// The id of the message or turn.
    pub fn id(&self) -> &str {
        match self {
            Self::MessageUpsert { record, .. } => &record.id,
            Self::TurnUpsert { record, .. } => &record.id,
            Self::MessageRemove { previous } | Self::TurnRemove { previous } => &previous.order.id,
        }
    }

    /// Whether it is about a message; else it is about a turn.
    pub const fn is_message(&self) -> bool {
        matches!(self, Self::MessageUpsert { .. } | Self::MessageRemove { .. })
    }
}
