//! Completed tool calls, which both layouts store with the same two members.

use crate::object::Object;
use crate::row_error::RowError;

/// `state` of a part (1.x) or item (2.x) that is a tool call in state `completed`.
pub(super) fn completed_state<'a>(tool: &Object<'a>) -> Result<Option<Object<'a>>, RowError> {
    if !tool.is("type", "tool") {
        return Ok(None);
    }
    Ok(tool.object("state")?.filter(|state| state.is("status", "completed")))
}
