//! One message, put together from its rows.

use std::io;

use headwater_model::{ByteCount, UnixMillis};
use rusqlite::{MAIN_DB, OptionalExtension};

use super::order::Place;
use super::outline::{self, Head, Item};
use super::{
    ITEMS_MAX, Layout, MESSAGE_TEXT_BYTES_MAX, ShowOptions, ShownItem, ShownMessage, ShownText, TextSource,
    stream_text,
};
use crate::json_stream::JsonError;
use crate::open::ReadDatabase;
use crate::reading::{ReadError, count_of, cut_at_character, integer_of, or_null, short, text_of};

/// The message at `place`, `None` where its row is gone.
pub(super) fn message(
    database: &ReadDatabase,
    place: Place,
    options: ShowOptions,
) -> Result<Option<ShownMessage>, ReadError> {
    let schema = database.schema();
    let table = place.table();
    let mut statement = database.connection().prepare_cached(&format!(
        "SELECT {}, {}, {}, octet_length(data), {} FROM {table} WHERE rowid = ?1",
        short(schema, table, "id"),
        short(schema, table, "session_id"),
        or_null(schema, table, "time_created"),
        short(schema, table, "type"),
    ))?;
    let found = statement
        .query_row([place.rowid], |row| {
            let message = ShownMessage {
                id: text_of(row, 0)?.unwrap_or_default(),
                session: text_of(row, 1)?.unwrap_or_default(),
                layout: if place.is_v2 { Layout::V2 } else { Layout::V1 },
                role: String::new(),
                created: UnixMillis::new(integer_of(row, 2)?.unwrap_or(0)),
                completed: None,
                model: None,
                agent: None,
                is_summary: false,
                error: None,
                bytes: ByteCount::new(count_of(row, 3)?),
                is_readable: true,
                items: Vec::new(),
                items_left_out: 0,
            };
            Ok((message, text_of(row, 4)?))
        })
        .optional()?;
    let Some((mut message, row_type)) = found else { return Ok(None) };
    let mut texts = Texts { database, options, budget: MESSAGE_TEXT_BYTES_MAX };
    if place.is_v2 {
        add_v2(&mut texts, &mut message, place.rowid, &row_type.unwrap_or_default())?;
    } else {
        add_v1(&mut texts, &mut message, place.rowid)?;
    }
    Ok(Some(message))
}

fn add_v2(
    texts: &mut Texts<'_>,
    message: &mut ShownMessage,
    rowid: i64,
    row_type: &str,
) -> Result<(), ReadError> {
    let outline = texts.outline("session_message", rowid, |data| outline::v2_message(row_type, data))?;
    let Some((head, items, left_out)) = outline else {
        message.is_readable = false;
        row_type.clone_into(&mut message.role);
        return Ok(());
    };
    message.take(head);
    message.items_left_out = left_out;
    for (index, item) in items.into_iter().enumerate() {
        let shown = texts.item(index, "session_message", rowid, item)?;
        message.items.push(shown);
    }
    Ok(())
}

fn add_v1(texts: &mut Texts<'_>, message: &mut ShownMessage, rowid: i64) -> Result<(), ReadError> {
    match texts.outline("message", rowid, |data| outline::v1_message(data))? {
        Some(head) => message.take(head),
        None => message.is_readable = false,
    }
    let schema = texts.database.schema();
    if !schema.has("part", "message_id") {
        return Ok(());
    }
    let mut statement = texts.database.connection().prepare_cached(&format!(
        "SELECT rowid, {}, octet_length(data) FROM part WHERE message_id = ?1 ORDER BY id",
        short(schema, "part", "id"),
    ))?;
    let mut rows = statement.query([&message.id])?;
    while let Some(row) = rows.next()? {
        if message.items.len() == ITEMS_MAX {
            message.items_left_out += 1;
            continue;
        }
        let rowid = row.get(0)?;
        let bytes = ByteCount::new(count_of(row, 2)?);
        let outline = texts.outline("part", rowid, |data| outline::v1_part(data))?;
        let mut item = outline.unwrap_or_default();
        (item.bytes, item.id) = (bytes, text_of(row, 1)?);
        message.bytes += bytes;
        let shown = texts.item(message.items.len(), "part", rowid, item)?;
        message.items.push(shown);
    }
    Ok(())
}

impl ShownMessage {
    fn take(&mut self, head: Head) {
        self.role = head.role.unwrap_or_default();
        self.completed = head.completed.map(UnixMillis::new);
        self.model = head.model;
        self.agent = head.agent;
        self.is_summary = head.is_summary;
        self.error = head.error;
    }
}

/// Reads texts within the options and what one message may hold.
struct Texts<'db> {
    database: &'db ReadDatabase,
    options: ShowOptions,
    budget: usize,
}

impl Texts<'_> {
    /// What a row holds; `None` where it is not JSON.
    fn outline<T>(
        &self,
        table: &str,
        rowid: i64,
        read: impl FnOnce(rusqlite::blob::Blob<'_>) -> Result<T, JsonError>,
    ) -> Result<Option<T>, ReadError> {
        // A value that is neither text nor bytes has no handle, and is not JSON of a row.
        let Ok(blob) = self.database.connection().blob_open(MAIN_DB, table, "data", rowid, true) else {
            return Ok(None);
        };
        match read(blob) {
            Ok(outline) => Ok(Some(outline)),
            Err(JsonError::Malformed(_) | JsonError::TooDeep) => Ok(None),
            Err(JsonError::Io(error)) => Err(sqlite_error(error)),
        }
    }

    fn item(
        &mut self,
        index: usize,
        table: &'static str,
        rowid: i64,
        item: Item,
    ) -> Result<ShownItem, ReadError> {
        let places = item.texts(self.options.technical);
        let source = (!places.is_empty()).then_some(TextSource { table, rowid, places });
        let text = source.as_ref().map(|source| self.text(source)).transpose()?;
        Ok(ShownItem {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            id: item.id,
            kind: item.kind.unwrap_or_else(|| "unreadable".to_owned()),
            tool: item.tool,
            status: item.status,
            title: item.title,
            bytes: item.bytes,
            text,
            source,
        })
    }

    fn text(&mut self, source: &TextSource) -> Result<ShownText, ReadError> {
        let limit = self.options.text_bytes_max.min(self.budget);
        let mut text = Vec::new();
        let mut is_cut = false;
        let outcome = stream_text(self.database, source, &mut |piece| {
            let room = limit - text.len();
            text.extend_from_slice(&piece.as_bytes()[..piece.len().min(room)]);
            is_cut |= piece.len() > room;
            // Ends the reading; nothing else in it fails with this kind.
            if is_cut { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
        });
        if !is_cut {
            outcome?;
        }
        self.budget -= text.len();
        Ok(ShownText {
            text: cut_at_character(text),
            is_cut,
            stored_bytes: source.places.iter().map(|place| ByteCount::new(place.bytes)).sum(),
        })
    }
}

/// The error of SQLite inside one of reading a value.
fn sqlite_error(error: io::Error) -> ReadError {
    match error.downcast::<rusqlite::Error>() {
        Ok(error) => error.into(),
        Err(error) => ReadError::Output(error),
    }
}
