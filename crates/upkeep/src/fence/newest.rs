//! What the newest rows of a session say about a running turn (fact A9).

use std::io::BufReader;

use headwater_model::UnixMillis;
use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;

use super::{SessionPlace, Storage};
use crate::schema::Schema;

/// Whether the newest assistant message has no completion time. A row that cannot be read counts as unfinished.
pub(super) fn is_unfinished(
    connection: &Connection,
    schema: &Schema,
    place: &SessionPlace,
) -> rusqlite::Result<bool> {
    match place.storage {
        Storage::V1 => Ok(is_unfinished_v1(connection, place)?
            || (schema.has_table("session_message") && is_unfinished_v2(connection, place)?)),
        Storage::V2OnV1Session => Ok(is_unfinished_v2(connection, place)?
            || (schema.has_table("message") && is_unfinished_v1(connection, place)?)),
        Storage::V2 => is_unfinished_v2(connection, place),
    }
}

/// 1.x: walks back to the newest assistant message; a user message stands after it while an answer is about to begin.
fn is_unfinished_v1(connection: &Connection, place: &SessionPlace) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT rowid FROM message WHERE session_id = ?1 ORDER BY time_created DESC, id DESC",
    )?;
    let mut rows = statement.query([place.session.as_str()])?;
    while let Some(row) = rows.next()? {
        match head(connection, "message", row.get(0)?)? {
            None => return Ok(true),
            Some(head) if head.role.as_deref() == Some("assistant") => return Ok(!head.is_completed()),
            Some(_) => {}
        }
    }
    Ok(false)
}

fn is_unfinished_v2(connection: &Connection, place: &SessionPlace) -> rusqlite::Result<bool> {
    let newest: Option<i64> = connection
        .prepare_cached(
            "SELECT rowid FROM session_message WHERE session_id = ?1 AND type = 'assistant' ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([place.session.as_str()], |row| row.get(0))
        .optional()?;
    let Some(rowid) = newest else { return Ok(false) };
    Ok(head(connection, "session_message", rowid)?.is_none_or(|head| !head.is_completed()))
}

/// The latest `time_updated` of any row of the session.
pub(super) fn last_change(
    connection: &Connection,
    schema: &Schema,
    place: &SessionPlace,
) -> rusqlite::Result<Option<UnixMillis>> {
    let mut last: Option<i64> = None;
    for (table, column) in [
        (place.storage.session_table(), "id"),
        ("message", "session_id"),
        ("part", "session_id"),
        ("session_message", "session_id"),
    ] {
        if schema.has(table, "time_updated") && schema.has(table, column) {
            let sql = format!("SELECT max(time_updated) FROM {table} WHERE {column} = ?1");
            let found: Option<i64> =
                connection.prepare_cached(&sql)?.query_row([place.session.as_str()], |row| row.get(0))?;
            last = last.max(found);
        }
    }
    Ok(last.map(UnixMillis::new))
}

/// The members of a message row that tell whether it is finished.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    time: Time,
}

#[derive(Default, Deserialize)]
struct Time {
    #[serde(default)]
    completed: Option<serde_json::Number>,
}

impl Head {
    fn is_completed(&self) -> bool {
        self.time.completed.is_some()
    }
}

/// A JSON object and nothing else: a derived struct would accept an array too.
struct Object(Head);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMap;
        impl<'de> serde::de::Visitor<'de> for OnlyMap {
            type Value = Head;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Head, A::Error> {
                Head::deserialize(serde::de::value::MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(OnlyMap).map(Self)
    }
}

/// `None` where the row is not readable JSON. The row is streamed: a message may be hundreds of mebibytes.
fn head(connection: &Connection, table: &'static str, rowid: i64) -> rusqlite::Result<Option<Head>> {
    let blob = match connection.blob_open("main", table, "data", rowid, true) {
        Ok(blob) => blob,
        // The value is NULL or a number.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(16 * 1024, blob));
    let head = Object::deserialize(&mut reader).ok();
    let is_whole = reader.end().is_ok();
    Ok(head.filter(|_| is_whole).map(|head| head.0))
}
