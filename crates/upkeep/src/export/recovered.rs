//! A conversation of which only events are left, put together from the newest copy of each message and part (fact A4).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use headwater_model::UnixMillis;
use headwater_prune::{Entity, EntityKind, Facts, event_entity};
use rusqlite::MAIN_DB;
use serde_json::Value;

use super::Written;
use super::markdown::{Fence, Quoted, instant, one_line, role};
use crate::ReadDatabase;
use crate::observer::Observer;
use crate::reading::{ReadError, read_prefix, text_of};

/// Bytes of a copy that are enough to tell of what it is one.
const PREFIX_BYTES: usize = 4096;

/// A copy that is larger is named and left out; the JSON lines have it.
const COPY_BYTES_MAX: usize = 16 << 20;

/// Writes what the events of `id` tell.
pub(super) fn write(
    database: &ReadDatabase,
    id: &str,
    with_technical: bool,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<Written, ReadError> {
    let newest = Newest::find(database, id, observer)?;
    let title = match newest.session {
        Some(rowid) => {
            copy(database, rowid)?.and_then(|data| Some(data["info"]["title"].as_str()?.to_owned()))
        }
        None => None,
    };
    let title = one_line(title.as_deref().unwrap_or(id));
    let head = format!("# {title}\n\n- Session: `{}`, put together from its events\n\n", one_line(id));
    out.write_all(head.as_bytes()).map_err(ReadError::Output)?;
    let mut written = Written::default();
    let mut message = None;
    let mut has_heading = false;
    // Ids of parts grow with time, so their order is the order of the conversation.
    for &rowid in newest.parts.values() {
        if observer.is_cancelled() {
            return Err(ReadError::Cancelled);
        }
        let Some(data) = copy(database, rowid)? else {
            written.unreadable += 1;
            out.write_all(b"*A part that cannot be read.*\n\n").map_err(ReadError::Output)?;
            continue;
        };
        let part = &data["part"];
        let of = part["messageID"].as_str().unwrap_or_default().to_owned();
        if newest.removed.contains(&of) {
            continue;
        }
        if message.as_ref() != Some(&of) {
            written.entries += 1;
            message = Some(of.clone());
            has_heading = false;
        }
        let mut text = Vec::new();
        self::part(part, with_technical, &mut text).map_err(ReadError::Output)?;
        if !text.is_empty() && !has_heading {
            let info = match newest.messages.get(of.as_str()) {
                Some(&rowid) => copy(database, rowid)?,
                None => None,
            };
            heading(info.as_ref(), out)?;
            has_heading = true;
        }
        out.write_all(&text).map_err(ReadError::Output)?;
    }
    Ok(written)
}

/// Rowids of the newest copies.
#[derive(Default)]
struct Newest {
    session: Option<i64>,
    messages: BTreeMap<Box<str>, i64>,
    parts: BTreeMap<Box<str>, i64>,
    /// Messages that were removed.
    removed: BTreeSet<String>,
}

impl Newest {
    fn find(database: &ReadDatabase, id: &str, observer: &dyn Observer) -> Result<Self, ReadError> {
        let mut newest = Self::default();
        let schema = database.schema();
        if !["id", "aggregate_id", "seq", "type", "data"].iter().all(|column| schema.has("event", column)) {
            return Ok(newest);
        }
        let sql = "SELECT rowid, type FROM event WHERE aggregate_id = ?1 AND typeof(data) IN ('text', 'blob') ORDER BY seq";
        let mut statement = database.connection().prepare(sql)?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            if observer.is_cancelled() {
                return Err(ReadError::Cancelled);
            }
            newest.take(database, row.get(0)?, &text_of(row, 1)?.unwrap_or_default())?;
        }
        Ok(newest)
    }

    fn take(&mut self, database: &ReadDatabase, rowid: i64, event_type: &str) -> Result<(), ReadError> {
        match event_type {
            "message.part.removed.1" => {
                let data = copy(database, rowid)?;
                if let Some(id) = data.as_ref().and_then(|data| data["partID"].as_str()) {
                    self.parts.remove(id);
                }
                return Ok(());
            }
            "message.removed.1" => {
                let data = copy(database, rowid)?;
                if let Some(id) = data.as_ref().and_then(|data| data["messageID"].as_str()) {
                    self.removed.insert(id.to_owned());
                }
                return Ok(());
            }
            "session.created.1" => {
                self.session = self.session.or(Some(rowid));
                return Ok(());
            }
            _ => {}
        }
        let blob = database.connection().blob_open(MAIN_DB, "event", "data", rowid, true)?;
        let prefix = read_prefix(&blob, PREFIX_BYTES)?;
        let Facts::Known(Some(Entity { kind, id })) =
            event_entity(event_type, &prefix, prefix.len() == blob.len())
        else {
            return Ok(());
        };
        match kind {
            EntityKind::Session => self.session = Some(rowid),
            EntityKind::Message => drop(self.messages.insert(id, rowid)),
            EntityKind::Part => drop(self.parts.insert(id, rowid)),
        }
        Ok(())
    }
}

/// The data of an event; `None` where it is too large or not JSON.
fn copy(database: &ReadDatabase, rowid: i64) -> Result<Option<Value>, ReadError> {
    let blob = database.connection().blob_open(MAIN_DB, "event", "data", rowid, true)?;
    if blob.len() > COPY_BYTES_MAX {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&read_prefix(&blob, COPY_BYTES_MAX)?).ok())
}

fn heading(data: Option<&Value>, out: &mut dyn Write) -> Result<(), ReadError> {
    let info = data.map_or(&Value::Null, |data| &data["info"]);
    let name = role(info["role"].as_str().unwrap_or_default(), info["summary"] == true);
    let time = info["time"]["created"].as_i64().map(|time| format!(", {}", instant(UnixMillis::new(time))));
    write!(out, "## {name}{}\n\n", time.unwrap_or_default()).map_err(ReadError::Output)
}

fn part(part: &Value, with_technical: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let text = part["text"].as_str().unwrap_or_default();
    match part["type"].as_str() {
        Some("text") if !text.is_empty() => write!(out, "{text}\n\n"),
        Some("reasoning") if with_technical && !text.is_empty() => {
            out.write_all(b"> ")?;
            Quoted(out).write_all(text.as_bytes())?;
            out.write_all(b"\n\n")
        }
        Some("tool") if with_technical => {
            let state = &part["state"];
            let name = |value: &Value| one_line(value.as_str().unwrap_or("?"));
            write!(out, "### Tool `{}`, {}\n\n", name(&part["tool"]), name(&state["status"]))?;
            let mut body = state["input"].to_string();
            for text in [&state["output"], &state["error"]].into_iter().filter_map(Value::as_str) {
                body = body + "\n" + text;
            }
            let mut fence = Fence::default();
            fence.write_all(body.as_bytes())?;
            let fence = fence.line();
            write!(out, "{fence}\n{body}\n{fence}\n\n")
        }
        Some("file") => write!(out, "*Attached: {}*\n\n", one_line(part["filename"].as_str().unwrap_or("?"))),
        _ => Ok(()),
    }
}
