//! Class `diffs`.

use crate::edit::Edits;
use crate::object::Object;
use crate::row_error::RowError;

/// Empties `summary.diffs` of a user message. OpenCode does not compute it again (fact A6).
pub(super) fn edit<'a>(message: &Object<'a>, edits: &mut Edits<'a>) -> Result<(), RowError> {
    if !message.is("role", "user") {
        return Ok(());
    }
    let Some(summary) = message.object("summary")? else { return Ok(()) };
    let Some(diffs) = summary.get("diffs") else { return Ok(()) };
    if diffs.array()?.is_some_and(|entries| !entries.is_empty()) {
        edits.replace(diffs.range.clone(), &b"[]"[..]);
    }
    Ok(())
}
