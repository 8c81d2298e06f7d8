//! Rows as records. A stored row may hold anything; what it holds is shown as far as it can be, and no row makes a page fail.

use headwater_model::conversation::{MessageRecord, OrderKey, Place, SessionRecord, TurnRecord, USER};
use headwater_model::{OrderTime, WallTime};
use headwater_store::rules;
use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};

use crate::order::{self, order_time};

/// The columns of [`message`], in order, but for the order key behind them.
pub(crate) const STORED_MESSAGE_COLUMNS: &str = "id, task_session_id, task_id, turn_id, author_type, author_id, type, content, requests_input, metadata, \
     created_at, updated_at, prompt_seq";

/// The columns of [`message`], in order.
pub(crate) fn message_columns() -> String {
    format!("{STORED_MESSAGE_COLUMNS}, {}", order_time("created_at"))
}

/// The columns of [`turn`], in order.
pub(crate) fn turn_columns() -> String {
    format!(
        "id, task_session_id, task_id, execution_profile_id, route_generation, metadata, started_at, completed_at, \
         created_at, updated_at, {}",
        order_time("started_at")
    )
}

/// The columns of [`session`], in order.
pub(crate) const SESSION_COLUMNS: &str = "id, task_id, name, state, started_at, completed_at, updated_at";

/// Reads a message.
pub(crate) fn message(row: &Row<'_>) -> Result<MessageRecord> {
    Ok(MessageRecord { order_time: named(row, 13)?.map(OrderTime::from_stored), ..unordered_message(row)? })
}

/// Reads a message without its order key, which follows from a time of creation in the spelling that this program writes; `None` where it has
/// another one, whose key is the database's to say.
pub(crate) fn plain_message(row: &Row<'_>) -> Result<Option<MessageRecord>> {
    let is_plain = row.get_ref(10)?.as_str_or_null().ok().flatten().is_some_and(order::is_plain);
    if !is_plain {
        return Ok(None);
    }
    let record = unordered_message(row)?;
    // What looks like a time may be none: the 31st of February.
    let is_time = record.created_at != WallTime::UNKNOWN;
    Ok(is_time.then(|| MessageRecord { order_time: Some(record.created_at.order_time()), ..record }))
}

fn unordered_message(row: &Row<'_>) -> Result<MessageRecord> {
    let author_type = text(row, 4)?;
    let prompt_seq = integer(row, 12)?;
    let kind = text(row, 6)?;
    Ok(MessageRecord {
        id: text(row, 0)?,
        session_id: text(row, 1)?,
        task_id: named(row, 2)?,
        turn_id: named(row, 3)?,
        prompt_index: u64::try_from(prompt_seq).ok().filter(|number| *number > 0 && author_type == USER),
        author_type,
        author_id: text(row, 5)?,
        kind: if kind.is_empty() { rules::PLAIN.to_owned() } else { kind },
        content: text(row, 7)?,
        requests_input: integer(row, 8)? != 0,
        metadata: text(row, 9)?,
        created_at: time(row, 10)?.unwrap_or(WallTime::UNKNOWN),
        updated_at: time(row, 11)?.unwrap_or(WallTime::UNKNOWN),
        order_time: None,
    })
}

/// Reads a turn.
pub(crate) fn turn(row: &Row<'_>) -> Result<TurnRecord> {
    Ok(TurnRecord {
        id: text(row, 0)?,
        session_id: text(row, 1)?,
        task_id: named(row, 2)?,
        execution_profile_id: text(row, 3)?,
        route_generation: integer(row, 4)?,
        metadata: text(row, 5)?,
        started_at: time(row, 6)?.unwrap_or(WallTime::UNKNOWN),
        completed_at: named(row, 7)?.map(|text| WallTime::parse_stored(&text).unwrap_or(WallTime::UNKNOWN)),
        created_at: time(row, 8)?.unwrap_or(WallTime::UNKNOWN),
        updated_at: time(row, 9)?.unwrap_or(WallTime::UNKNOWN),
        order_time: named(row, 10)?.map(OrderTime::from_stored),
    })
}

/// Reads a session.
pub(crate) fn session(row: &Row<'_>) -> Result<SessionRecord> {
    Ok(SessionRecord {
        id: text(row, 0)?,
        task_id: text(row, 1)?,
        name: text(row, 2)?,
        state: text(row, 3)?,
        started_at: time(row, 4)?.unwrap_or(WallTime::UNKNOWN),
        completed_at: named(row, 5)?.map(|text| WallTime::parse_stored(&text).unwrap_or(WallTime::UNKNOWN)),
        updated_at: time(row, 6)?.unwrap_or(WallTime::UNKNOWN),
    })
}

/// The columns of [`place`], in order.
pub(crate) fn place_columns() -> String {
    format!("id, task_id, author_type, {}", order_time("created_at"))
}

/// Reads where a message stands, from the columns at `first` and behind.
pub(crate) fn place(row: &Row<'_>, first: usize) -> Result<Place> {
    let order = OrderKey { time: named(row, first + 3)?.map(OrderTime::from_stored), id: text(row, first)? };
    Ok(Place { task_id: named(row, first + 1)?, author_type: Some(text(row, first + 2)?), order })
}

/// Text of any storage class; NULL is empty, bytes that are not UTF-8 become U+FFFD.
pub(crate) fn text(row: &Row<'_>, column: usize) -> Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => String::new(),
        // Nearly all text is right, and told so faster than put right.
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => std::str::from_utf8(bytes)
            .map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), str::to_owned),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
    })
}

/// Text, where there is any.
fn named(row: &Row<'_>, column: usize) -> Result<Option<String>> {
    text(row, column).map(|text| Some(text).filter(|text| !text.is_empty()))
}

fn integer(row: &Row<'_>, column: usize) -> Result<i64> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => number,
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => 0,
    })
}

fn time(row: &Row<'_>, column: usize) -> Result<Option<WallTime>> {
    Ok(WallTime::parse_stored(&text(row, column)?).ok())
}
