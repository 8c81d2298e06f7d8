//! A session as a list shows it.

use headwater_model::conversation::SessionRecord;
use headwater_model::{Revision, WallTime};
use serde::Serialize;

/// A session with what a list says of it; no content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionOverview {
    /// Its row.
    #[serde(flatten)]
    pub session: SessionRecord,
    /// The title of its task; empty where the task has none.
    #[serde(rename = "taskTitle")]
    pub task_title: String,
    /// Messages in it.
    pub messages: u64,
    /// Where its history is.
    pub revision: Revision,
    /// When something happened in it last: the change of its row or its newest message.
    #[serde(rename = "lastActivity")]
    pub last_activity: WallTime,
}
