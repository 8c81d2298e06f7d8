//! Class `compacted`.

use crate::edit::Edits;
use crate::object::{Object, Value};
use crate::row_error::RowError;

/// Whether OpenCode marked the output of this completed call as no longer sent: `time.compacted` is true for JavaScript.
pub(super) fn is_marked(state: &Object<'_>) -> Result<bool, RowError> {
    Ok(state.object("time")?.is_some_and(|time| time.get("compacted").is_some_and(Value::is_truthy)))
}

/// Empties `output`, which is required and stays a string, and removes `attachments`, which is not.
pub(super) fn edit<'a>(state: &Object<'a>, edits: &mut Edits<'a>) {
    if let Some(output) = state.get("output")
        && matches!(output.text(), Ok(Some(text)) if !text.raw().is_empty())
    {
        edits.replace(output.range.clone(), &b"\"\""[..]);
    }
    let entries: Vec<_> = state.0.iter().map(|member| member.range.clone()).collect();
    edits.remove(&entries, |index| state.0.get(index).is_some_and(|member| member.key.is("attachments")));
}
