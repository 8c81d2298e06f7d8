//! A stored session.

use serde::{Deserialize, Serialize};

use crate::WallTime;

/// The row of a session, as far as it concerns its conversation: `task_sessions` (C1). The other columns belong to the agent host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// Unique among all sessions.
    pub id: String,
    /// The task that owns it; it goes with the task.
    pub task_id: String,
    /// What people call it; empty where it has no name.
    pub name: String,
    /// `CREATED`, `RUNNING` and so on, as the host sets it.
    pub state: String,
    /// When it began; [`WallTime::UNKNOWN`] where the row does not say.
    pub started_at: WallTime,
    /// When it ended; none while it is open.
    pub completed_at: Option<WallTime>,
    /// When the row was changed last; [`WallTime::UNKNOWN`] where it does not say.
    pub updated_at: WallTime,
}
