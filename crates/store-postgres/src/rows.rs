//! Rows as records.

use headwater_model::conversation::{MessageRecord, OrderKey, Place, SessionRecord, TurnRecord, USER};
use headwater_model::{OrderTime, WallTime};
use headwater_store::rules;
use tokio_postgres::{Error, Row};

/// A stored time as the key of the order, which is also the text that a record's time is read from (C34). The column keeps microseconds,
/// so nothing is cut; NULL stays NULL.
fn time_text(column: &str) -> String {
    format!("to_char({column}, 'YYYY-MM-DD HH24:MI:SS.US')")
}

/// The columns of [`message`], in order.
pub(crate) fn message_columns() -> String {
    format!(
        "id, task_session_id, task_id, turn_id, author_type, author_id, type, content, coalesce(requests_input, 0)::bigint, metadata, \
         {}, {}, coalesce(prompt_seq, 0)::bigint",
        time_text("created_at"),
        time_text("updated_at")
    )
}

/// The columns of [`turn`], in order.
pub(crate) fn turn_columns() -> String {
    let [started, completed, created, updated] =
        ["started_at", "completed_at", "created_at", "updated_at"].map(time_text);
    format!(
        "id, task_session_id, task_id, execution_profile_id, route_generation::bigint, metadata, {started}, {completed}, {created}, \
         {updated}"
    )
}

/// The columns of [`session`], in order.
pub(crate) fn session_columns() -> String {
    let [started, completed, updated] = ["started_at", "completed_at", "updated_at"].map(time_text);
    format!("id, task_id, name, state, {started}, {completed}, {updated}")
}

/// The columns of [`place`], in order.
pub(crate) fn place_columns() -> String {
    format!("id, task_id, author_type, {}", time_text("created_at"))
}

/// Reads a message.
pub(crate) fn message(row: &Row) -> Result<MessageRecord, Error> {
    let author_type = text(row, 4)?;
    let kind = text(row, 6)?;
    let prompt_seq: i64 = row.try_get(12)?;
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
        requests_input: row.try_get::<_, i64>(8)? != 0,
        metadata: text(row, 9)?,
        created_at: time(row, 10)?.unwrap_or(WallTime::UNKNOWN),
        updated_at: time(row, 11)?.unwrap_or(WallTime::UNKNOWN),
        order_time: named(row, 10)?.map(OrderTime::from_stored),
    })
}

/// Reads a turn.
pub(crate) fn turn(row: &Row) -> Result<TurnRecord, Error> {
    Ok(TurnRecord {
        id: text(row, 0)?,
        session_id: text(row, 1)?,
        task_id: named(row, 2)?,
        execution_profile_id: text(row, 3)?,
        route_generation: row.try_get(4)?,
        metadata: text(row, 5)?,
        started_at: time(row, 6)?.unwrap_or(WallTime::UNKNOWN),
        completed_at: time(row, 7)?,
        created_at: time(row, 8)?.unwrap_or(WallTime::UNKNOWN),
        updated_at: time(row, 9)?.unwrap_or(WallTime::UNKNOWN),
        order_time: named(row, 6)?.map(OrderTime::from_stored),
    })
}

/// Reads a session.
pub(crate) fn session(row: &Row) -> Result<SessionRecord, Error> {
    Ok(SessionRecord {
        id: text(row, 0)?,
        task_id: text(row, 1)?,
        name: text(row, 2)?,
        state: text(row, 3)?,
        started_at: time(row, 4)?.unwrap_or(WallTime::UNKNOWN),
        completed_at: time(row, 5)?,
        updated_at: time(row, 6)?.unwrap_or(WallTime::UNKNOWN),
    })
}

/// Reads where a message stands, from the columns at `first` and behind.
pub(crate) fn place(row: &Row, first: usize) -> Result<Place, Error> {
    let order = OrderKey { time: named(row, first + 3)?.map(OrderTime::from_stored), id: text(row, first)? };
    Ok(Place { task_id: named(row, first + 1)?, author_type: Some(text(row, first + 2)?), order })
}

/// Text; NULL is empty.
fn text(row: &Row, column: usize) -> Result<String, Error> {
    Ok(row.try_get::<_, Option<String>>(column)?.unwrap_or_default())
}

/// Text, where there is any.
fn named(row: &Row, column: usize) -> Result<Option<String>, Error> {
    text(row, column).map(|text| Some(text).filter(|text| !text.is_empty()))
}

fn time(row: &Row, column: usize) -> Result<Option<WallTime>, Error> {
    Ok(named(row, column)?.map(|text| WallTime::parse_stored(&text).unwrap_or(WallTime::UNKNOWN)))
}
