//! Class `attachments`.

use headwater_wire::json::Kind;

use super::GAIN_BYTES_MIN;
use crate::edit::Edits;
use crate::object::{Object, Value};
use crate::row_error::RowError;

/// MIME types of file parts that OpenCode does not send to the model.
const NOT_SENT: [&str; 2] = ["text/plain", "application/x-directory"];

/// A 1.x file part of a user message.
pub(super) fn edit_file_part<'a>(part: &Object<'a>, edits: &mut Edits<'a>) -> Result<(), RowError> {
    let (Some(kind), Some(url)) = (part.get("type"), part.member("url")) else { return Ok(()) };
    if !is_inline(&url.value) {
        return Ok(());
    }
    if NOT_SENT.iter().any(|mime| part.is("mime", mime)) {
        edits.replace(url.value.range.clone(), &b"\"data:text/plain;base64,\""[..]);
        return Ok(());
    }
    // A part that has these members already is no file part of OpenCode's.
    if part.get("text").is_some() || part.get("synthetic").is_some() {
        return Ok(());
    }
    let note = note(part, "filename")?;
    let with = [b"\"text\":\"", note.as_bytes(), b"\",\"synthetic\":true"].concat();
    // A file's name may be longer than its content.
    if with.len() < url.range.len() {
        edits.replace(kind.range.clone(), &b"\"text\""[..]);
        edits.replace(url.range.clone(), with);
    }
    Ok(())
}

/// `attachments` of a completed 1.x tool.
pub(super) fn edit_tool_attachments<'a>(state: &Object<'a>, edits: &mut Edits<'a>) -> Result<(), RowError> {
    let attachments = state.array("attachments")?.unwrap_or_default();
    remove(&attachments, edits, |file| file.get("url").is_some_and(is_inline))
}

/// `files` of a 2.x user row: the whole entry goes, since its content is a required member. Earlier releases hold the content in a
/// `data:` URI, later ones as base64 in `data`, also where the file came from elsewhere. A message without text keeps its files: it
/// would have no content.
pub(super) fn edit_files<'a>(row: &Object<'a>, edits: &mut Edits<'a>) -> Result<(), RowError> {
    let has_text = row.text("text")?.is_some_and(|text| !text.raw().trim().is_empty());
    let files = row.array("files")?.unwrap_or_default();
    if !has_text {
        return Ok(());
    }
    remove(&files, edits, |file| {
        file.get("uri").is_some_and(is_inline)
            || file
                .get("data")
                .is_some_and(|data| data.kind == Kind::String && data.range.len() >= GAIN_BYTES_MIN)
    })
}

/// `content` of a completed 2.x tool: it must keep at least one item, so each file becomes a text.
pub(super) fn edit_tool_content<'a>(state: &Object<'a>, edits: &mut Edits<'a>) -> Result<(), RowError> {
    for item in state.array("content")?.unwrap_or_default() {
        let Some(members) = item.object()? else { continue };
        if members.is("type", "file") && members.get("uri").is_some_and(is_inline) {
            let note = note(&members, "name")?;
            edits.replace(item.range, [b"{\"type\":\"text\",\"text\":\"", note.as_bytes(), b"\"}"].concat());
        }
    }
    Ok(())
}

/// Removes the elements of an array for which `goes` holds.
fn remove<'a>(
    files: &[Value<'a>],
    edits: &mut Edits<'a>,
    goes: impl Fn(&Object<'a>) -> bool,
) -> Result<(), RowError> {
    let entries: Vec<_> = files.iter().map(|file| file.range.clone()).collect();
    let gone = files
        .iter()
        .map(|file| Ok(file.object()?.is_some_and(|file| goes(&file))))
        .collect::<Result<Vec<bool>, RowError>>()?;
    edits.remove(&entries, |index| gone.get(index).copied().unwrap_or(false));
    Ok(())
}

/// Whether a URL holds a file itself and is long enough to be worth an edit.
fn is_inline(url: &Value<'_>) -> bool {
    url.range.len() >= GAIN_BYTES_MIN && matches!(url.text(), Ok(Some(text)) if text.starts_with("data:"))
}

/// What OpenCode itself puts in the place of a file that it does not send, as the inside of a JSON string: the raw spelling of both
/// names is copied, so nothing has to be escaped.
fn note(file: &Object<'_>, name: &str) -> Result<String, RowError> {
    let mime = file.text("mime")?.map_or("file", |mime| mime.raw());
    let name = file.text(name)?.map_or("file", |name| name.raw());
    Ok(format!("[Attached {mime}: {name}]"))
}
