//! What the newest rows of a session say about a running turn (fact A9).

use headwater_model::UnixMillis;
use headwater_prune::{Facts, MessageFacts, Role, completion, message_facts};
use rusqlite::{Connection, ErrorCode, OptionalExtension};

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
            Head::Unreadable => return Ok(true),
            Head::Known(facts) => match facts.role {
                Role::Assistant => return Ok(facts.completed.is_none()),
                Role::User => {}
                // Whatever it is, nothing says that it is finished.
                Role::Unknown => return Ok(true),
            },
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
    let completed = decide_from_prefix(connection, "session_message", rowid, completion)?;
    Ok(completed.flatten().is_none())
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

/// What a row says about the message in it.
enum Head {
    Unreadable,
    Known(MessageFacts),
}

/// Reads as much of a 1.x row as it takes to tell: user messages may be hundreds of mebibytes and say early what they are.
fn head(connection: &Connection, table: &'static str, rowid: i64) -> rusqlite::Result<Head> {
    let facts = decide_from_prefix(connection, table, rowid, message_facts)?;
    Ok(facts.map_or(Head::Unreadable, Head::Known))
}

/// Asks `decide` with longer and longer prefixes of `data` until it knows. `None` where the row is not readable.
fn decide_from_prefix<T>(
    connection: &Connection,
    table: &'static str,
    rowid: i64,
    decide: impl Fn(&[u8], bool) -> Facts<T>,
) -> rusqlite::Result<Option<T>> {
    const FIRST_BYTES: usize = 1024;
    let blob = match connection.blob_open("main", table, "data", rowid, true) {
        Ok(blob) => blob,
        // The value is NULL or a number.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => return Ok(None),
        Err(error) => return Err(error),
    };
    let whole_bytes = blob.len();
    let mut prefix = Vec::new();
    loop {
        let wanted = prefix.len().saturating_mul(4).max(FIRST_BYTES).min(whole_bytes);
        prefix.resize(wanted, 0);
        blob.read_at_exact(&mut prefix, 0)?;
        match decide(&prefix, wanted == whole_bytes) {
            Facts::Known(facts) => return Ok(Some(facts)),
            Facts::NeedMore if wanted < whole_bytes => {}
            Facts::NeedMore | Facts::Unreadable => return Ok(None),
        }
    }
}
