//! A stored turn.

use serde::{Deserialize, Serialize};

use crate::conversation::{OrderKey, Place};
use crate::{OrderTime, WallTime};

/// The current row of a turn: `task_session_turns` (C1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    /// Unique among all turns.
    pub id: String,
    /// The session it is in.
    pub session_id: String,
    /// The task, where the row names one.
    pub task_id: Option<String>,
    /// Under which profile it ran; empty where unknown.
    pub execution_profile_id: String,
    /// Which route was in force.
    pub route_generation: i64,
    /// The JSON text of an object as stored; old rows may hold something else.
    pub metadata: String,
    /// When it began; [`WallTime::UNKNOWN`] where the row does not say.
    pub started_at: WallTime,
    /// When it ended; none while it runs.
    pub completed_at: Option<WallTime>,
    /// When the row was created; [`WallTime::UNKNOWN`] where it does not say.
    pub created_at: WallTime,
    /// When the row was changed last; [`WallTime::UNKNOWN`] where it does not say.
    pub updated_at: WallTime,
    /// The time by which it is ordered, as the database computed it (C34).
    pub order_time: Option<OrderTime>,
}

impl TurnRecord {
    /// Where it stands in its session.
    pub fn order_key(&self) -> OrderKey {
        OrderKey { time: self.order_time.clone(), id: self.id.clone() }
    }

    /// By what selections see it.
    pub fn place(&self) -> Place {
        Place { task_id: self.task_id.clone(), author_type: None, order: self.order_key() }
    }
}
