//! A stored message.

use serde::{Deserialize, Serialize};

use crate::conversation::{OrderKey, Place};
use crate::{OrderTime, WallTime};

/// The author type of prompts.
pub const USER: &str = "user";

/// The current row of a message: `task_session_messages` (C1). What the safe form for plugins leaves out (C11) is all here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRecord {
    /// Unique among all messages.
    pub id: String,
    /// The session it is in.
    pub session_id: String,
    /// The task, where the row names one.
    pub task_id: Option<String>,
    /// The turn, where the row names one.
    pub turn_id: Option<String>,
    /// `user` or `agent`; other values of old rows are kept.
    pub author_type: String,
    /// Who wrote it; empty where unknown.
    pub author_id: String,
    /// `message`, `tool_call`, `thinking` and so on; an empty stored type is `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text with system blocks, as stored. Bytes that are not UTF-8 are shown as U+FFFD.
    pub content: String,
    /// Whether it waits for an answer.
    pub requests_input: bool,
    /// The JSON text of an object as stored; old rows may hold something else.
    pub metadata: String,
    /// When it was created; [`WallTime::UNKNOWN`] where the row does not say.
    pub created_at: WallTime,
    /// When it was changed last; [`WallTime::UNKNOWN`] where the row does not say.
    pub updated_at: WallTime,
    /// The number of the prompt in its session, from 1; only user messages have one (C6).
    pub prompt_index: Option<u64>,
    /// The time by which it is ordered, as the database computed it (C34).
    pub order_time: Option<OrderTime>,
}

impl MessageRecord {
    /// Where it stands in its session.
    pub fn order_key(&self) -> OrderKey {
        OrderKey { time: self.order_time.clone(), id: self.id.clone() }
    }

    /// By what selections see it.
    pub fn place(&self) -> Place {
        Place {
            task_id: self.task_id.clone(),
            author_type: Some(self.author_type.clone()),
            order: self.order_key(),
        }
    }
}
