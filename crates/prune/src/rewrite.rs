//! Byte-exact edits of one row for the classes that shorten a field (P15).
//!
//! | class | row | edit | what the model and OpenCode's views get |
//! |---|---|---|---|
//! | `diffs` | 1.x user message | `summary.diffs` becomes `[]` | nothing changes for the model; the list of changed files of that turn is empty |
//! | `metadata` | completed tool | the members of `state.metadata` that copy the output or hold a diff go ([`METADATA_COPIES`]) | nothing changes for the model; the terminal shows the call as one line instead of its output or diff, the web view shows output from `state.output` |
//! | `attachments` | 1.x completed tool | entries of `state.attachments` with a `data:` URL go | the result keeps its text ("Image read successfully"), as OpenCode itself sends it after a compaction |
//! | `attachments` | 1.x file part of a user message | see below | a note in place of the file |
//! | `attachments` | 2.x tool result | an item of `state.content` with a `data:` URI becomes a text item with the note | a note in place of the file |
//! | `attachments` | 2.x user row | entries of `files` that hold a file's content go, unless the message has no text | the message without the file |
//! | `compacted` | 1.x completed tool with `state.time.compacted` | `state.output` becomes `""`, `state.attachments` goes | nothing changes: the model gets "[Old tool result content cleared]" either way |
//!
//! `state.metadata` of a tool in state `error` is never touched: for an interrupted call OpenCode sends `metadata.output` to the model.
//!
//! # File parts of 1.x user messages
//! The model gets every file part except those with MIME type `text/plain` or `application/x-directory`, whose content stands in
//! synthetic text parts beside it. A file part that the model gets becomes a synthetic text part `[Attached image/png: NAME]`, word for
//! word what OpenCode sends when it leaves media out itself: a `data:` URL without content is answered by providers with an error, and
//! leaving the part out could leave a message without content. The views don't show synthetic text, so the file's badge goes. A file part
//! that the model does not get keeps its badge and gets an empty `data:` URL. The caller applies this to parts of **user** messages only:
//! in an assistant message a text part would be sent as the assistant's words.
//!
//! Every edit is idempotent, touches no byte outside the fields named, and leaves a row alone where less than [`GAIN_BYTES_MIN`] bytes
//! of a field could go.

mod attachments;
mod compacted;
mod diffs;
mod metadata;
mod tool;

use crate::class::{Class, Classes};
use crate::edit::Edits;
use crate::object::{Object, document};
use crate::row_error::RowError;

pub use metadata::METADATA_COPIES;

/// Which table a row is of; `data` means something else in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// `message` (1.x).
    Message,
    /// `part` (1.x).
    Part,
    /// `session_message` (2.x).
    SessionMessage,
}

/// The outcome of [`rewrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// The classes take nothing from this row.
    Unchanged,
    /// The `data` to store.
    Changed(Vec<u8>),
}

/// Fewest bytes of one field that are worth an edit: a URL, an output or a copy that is shorter stays.
pub const GAIN_BYTES_MIN: usize = 128;

/// `data` without what the field classes of `classes` (diffs, metadata, attachments, compacted) take from it. Other classes are
/// ignored. The whole of `data` is scanned; memory is the result plus some bytes per member of the objects looked at.
///
/// # Errors
/// [`RowError`] where `data` is not a JSON object, or repeats a key in an object that decides.
pub fn rewrite(kind: RowKind, data: &[u8], classes: Classes) -> Result<Rewrite, RowError> {
    let Some(row) = document(data)?.object()? else { return Ok(Rewrite::Unchanged) };
    let mut edits = Edits::default();
    match kind {
        RowKind::Message if classes.has(Class::Diffs) => diffs::edit(&row, &mut edits)?,
        RowKind::Message => {}
        RowKind::Part => edit_part(&row, classes, &mut edits)?,
        RowKind::SessionMessage => edit_session_message(&row, classes, &mut edits)?,
    }
    Ok(if edits.is_empty() { Rewrite::Unchanged } else { Rewrite::Changed(edits.apply(data)) })
}

fn edit_part<'a>(row: &Object<'a>, classes: Classes, edits: &mut Edits<'a>) -> Result<(), RowError> {
    if row.is("type", "file") && classes.has(Class::Attachments) {
        return attachments::edit_file_part(row, edits);
    }
    let Some(state) = tool::completed_state(row)? else { return Ok(()) };
    if classes.has(Class::Metadata) {
        metadata::edit(&state, edits)?;
    }
    // What `compacted` takes holds the attachments as well.
    if classes.has(Class::Compacted) && compacted::is_marked(&state)? {
        compacted::edit(&state, edits);
    } else if classes.has(Class::Attachments) {
        attachments::edit_tool_attachments(&state, edits)?;
    }
    Ok(())
}

fn edit_session_message<'a>(
    row: &Object<'a>,
    classes: Classes,
    edits: &mut Edits<'a>,
) -> Result<(), RowError> {
    if classes.has(Class::Attachments) {
        attachments::edit_files(row, edits)?;
    }
    for item in row.array("content")?.unwrap_or_default() {
        let Some(item) = item.object()? else { continue };
        let Some(state) = tool::completed_state(&item)? else { continue };
        if classes.has(Class::Metadata) {
            metadata::edit(&state, edits)?;
        }
        if classes.has(Class::Attachments) {
            attachments::edit_tool_content(&state, edits)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
