//! Shows a session: its messages in order, what each is made of, and its text, in bounded memory whatever the size of a row.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

use headwater_model::{ByteCount, UnixMillis};
use rusqlite::MAIN_DB;
use serde::Serialize;

use crate::json_stream::{JsonError, decode_string};
use crate::observer::Observer;
use crate::open::ReadDatabase;
use crate::reading::ReadError;

mod compose;
mod order;
mod outline;

use order::Place;
use outline::TextPlace;

/// One message with what it is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownMessage {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: String,
    /// Which table holds it.
    pub layout: Layout,
    /// `user`, `assistant`, or the row's type (2.x).
    pub role: String,
    /// When it was created.
    pub created: UnixMillis,
    /// When an assistant completed it; absent while it is written, and after an interruption.
    pub completed: Option<UnixMillis>,
    /// The model, where the row names one.
    pub model: Option<String>,
    /// The agent, where the row names one.
    pub agent: Option<String>,
    /// Whether it is the summary of a compaction.
    pub is_summary: bool,
    /// Name of the error it ended with.
    pub error: Option<String>,
    /// Bytes of its rows.
    pub bytes: ByteCount,
    /// Whether its own row is JSON. What can be told of a row that is not is shown.
    pub is_readable: bool,
    /// What it is made of, in order; at most [`ITEMS_MAX`].
    pub items: Vec<ShownItem>,
    /// Items beyond that.
    pub items_left_out: u64,
}

/// Which layout a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `message` and `part`.
    V1,
    /// `session_message`.
    V2,
}

/// A part (1.x) or an element of a message's content (2.x).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownItem {
    /// Its position, by which `prune --index` names it: among the message's parts in id order (1.x) or in its content (2.x).
    pub index: u32,
    /// Id of the part (1.x) or of the tool call (2.x).
    pub id: Option<String>,
    /// Its kind: `text`, `reasoning`, `tool`, ...; `unreadable` where the row is not JSON or names none.
    pub kind: String,
    /// The tool's name.
    pub tool: Option<String>,
    /// State of the tool call.
    pub status: Option<String>,
    /// A short name: title of a tool call, name of a file.
    pub title: Option<String>,
    /// Bytes stored for it.
    pub bytes: ByteCount,
    /// Its text, where the options ask for it.
    pub text: Option<ShownText>,
    #[serde(skip)]
    source: Option<TextSource>,
}

/// A text, maybe cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownText {
    /// The text or its beginning.
    pub text: String,
    /// Whether more is stored: [`write_text`] gives all of it.
    pub is_cut: bool,
    /// Bytes of all of it as stored (JSON escapes included).
    pub stored_bytes: ByteCount,
}

/// Where texts of an item stand.
#[derive(Clone, Debug, PartialEq)]
struct TextSource {
    table: &'static str,
    rowid: i64,
    places: Vec<TextPlace>,
}

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub struct ShowOptions {
    /// Longest text of one item, in bytes.
    pub text_bytes_max: usize,
    /// Whether reasoning, tool input, output and errors are shown, not only named.
    pub technical: bool,
}

impl Default for ShowOptions {
    fn default() -> Self {
        Self { text_bytes_max: 16 * 1024, technical: false }
    }
}

/// Most items of one message that are shown; a request for a prune can name no more (P2).
pub const ITEMS_MAX: usize = 100_001;

/// Text of one message that is held at once, in bytes: what comes after it is cut to nothing and marked.
const MESSAGE_TEXT_BYTES_MAX: usize = 8 << 20;

/// Shows the messages of a session in order: those of the live layout where both hold it.
///
/// Reads each message when its turn comes and hands it to `each`, which may call [`write_text`] for texts that were cut.
///
/// # Errors
/// [`ReadError::NoSuchSession`] where no row names the session; other [`ReadError`]s, also what `each` returns.
pub fn session(
    database: &ReadDatabase,
    id: &str,
    options: ShowOptions,
    observer: &dyn Observer,
    mut each: impl FnMut(ShownMessage) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut places: VecDeque<Place> = order::of_session(database, id)?.ok_or(ReadError::NoSuchSession)?;
    while let Some(place) = places.pop_front() {
        if observer.is_cancelled() {
            return Err(ReadError::Cancelled);
        }
        // One that was deleted meanwhile is left out.
        if let Some(message) = compose::message(database, place, options)? {
            each(message)?;
        }
    }
    Ok(())
}

/// Shows one message.
///
/// # Errors
/// [`ReadError::NoSuchMessage`], and other [`ReadError`]s.
pub fn message(database: &ReadDatabase, id: &str, options: ShowOptions) -> Result<ShownMessage, ReadError> {
    let place = order::of_message(database, id)?.ok_or(ReadError::NoSuchMessage)?;
    compose::message(database, place, options)?.ok_or(ReadError::NoSuchMessage)
}

/// Writes all text of an item, read piece by piece; several texts of one item are separated by a newline.
///
/// # Errors
/// [`ReadError`], [`ReadError::Output`] where `out` fails.
pub fn write_text(
    database: &ReadDatabase,
    item: &ShownItem,
    out: &mut dyn io::Write,
) -> Result<(), ReadError> {
    let Some(source) = &item.source else { return Ok(()) };
    let mut failed = None;
    stream_text(database, source, &mut |piece| {
        out.write_all(piece.as_bytes()).map_err(|error| {
            failed = Some(error);
            io::Error::from(io::ErrorKind::Other)
        })
    })
    .map_err(|error| failed.map_or(error, ReadError::Output))
}

fn stream_text(
    database: &ReadDatabase,
    source: &TextSource,
    each: &mut dyn FnMut(&str) -> io::Result<()>,
) -> Result<(), ReadError> {
    let mut blob = database.connection().blob_open(MAIN_DB, source.table, "data", source.rowid, true)?;
    for (at, place) in source.places.iter().enumerate() {
        if at > 0 {
            each("\n").map_err(ReadError::Output)?;
        }
        blob.seek(SeekFrom::Start(place.start)).map_err(ReadError::Output)?;
        let bytes = (&mut blob).take(place.bytes);
        if place.is_string {
            decode_string(bytes, &mut *each).map_err(moved)?;
        } else {
            copy_lossy(bytes, each).map_err(ReadError::Output)?;
        }
    }
    Ok(())
}

/// The row was read whole before, so what is not JSON in it now has been rewritten since.
fn moved(error: JsonError) -> ReadError {
    match error {
        JsonError::Io(error) => ReadError::Output(error),
        JsonError::Malformed(_) | JsonError::TooDeep => ReadError::NoSuchMessage,
    }
}

/// Copies JSON as it is spelled.
fn copy_lossy(mut bytes: impl Read, each: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let mut kept: Vec<u8> = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let read = bytes.read(&mut buffer)?;
        kept.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&kept);
        let is_cut = read > 0 && std::str::from_utf8(&kept).is_err_and(|error| error.error_len().is_none());
        if is_cut {
            continue;
        }
        each(&text)?;
        drop(text);
        kept.clear();
        if read == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
