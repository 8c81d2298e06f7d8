//! Class `metadata`.

use super::GAIN_BYTES_MIN;
use crate::edit::Edits;
use crate::object::Object;
use crate::row_error::RowError;

/// Members of a completed tool's `state.metadata` that hold the output, the file or the change a second time (fact A3): `output` (bash),
/// `preview` and `display` (read), `diff`, `filediff` and `files` (edit, write, patch). Everything else stays, `exit`, `truncated`,
/// `outputPath`, `sessionId`, `diagnostics`, `loaded` and every member of an unknown name among it.
pub const METADATA_COPIES: [&str; 6] = ["output", "preview", "display", "diff", "filediff", "files"];

/// Removes the copies. The member `metadata` itself is required and stays an object.
pub(super) fn edit<'a>(state: &Object<'a>, edits: &mut Edits<'a>) -> Result<(), RowError> {
    let Some(metadata) = state.object("metadata")? else { return Ok(()) };
    let entries: Vec<_> = metadata.0.iter().map(|member| member.range.clone()).collect();
    let goes: Vec<bool> = metadata
        .0
        .iter()
        .map(|member| {
            member.value.range.len() >= GAIN_BYTES_MIN
                && METADATA_COPIES.iter().any(|name| member.key.is(name))
        })
        .collect();
    edits.remove(&entries, |index| goes.get(index).copied().unwrap_or(false));
    Ok(())
}
