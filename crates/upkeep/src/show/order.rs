//! Which messages a session has, in order.

use std::collections::VecDeque;

use rusqlite::OptionalExtension;

use crate::open::ReadDatabase;
use crate::reading::{ReadError, integer_of, or_null};

/// One message row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Position in the conversation: `seq` where the session lives in 2.x, else the time of creation.
    order: i64,
    pub(super) is_v2: bool,
    pub(super) rowid: i64,
}

impl Place {
    pub(super) fn table(self) -> &'static str {
        if self.is_v2 { "session_message" } else { "message" }
    }
}

/// The messages of a session, `None` where nothing names it. A row in `session_v2` makes the 2.x copy the live one (fact B2); a
/// session without it may have rows of both kinds, which are merged by time (fact A11).
pub(super) fn of_session(database: &ReadDatabase, id: &str) -> Result<Option<VecDeque<Place>>, ReadError> {
    let exists = |table: &str| -> Result<bool, ReadError> {
        if !database.schema().has(table, "id") {
            return Ok(false);
        }
        let mut statement = database.connection().prepare(&format!("SELECT 1 FROM {table} WHERE id = ?1"))?;
        Ok(statement.exists([id])?)
    };
    let lives_in_v2 = exists("session_v2")?;
    let mut places = Vec::new();
    if lives_in_v2 {
        add(database, "session_message", id, "seq", &mut places)?;
    } else {
        add(database, "message", id, "time_created", &mut places)?;
        add(database, "session_message", id, "time_created", &mut places)?;
        // Stable: each table came in its own order.
        places.sort_by_key(|place| place.order);
    }
    let is_known = lives_in_v2 || !places.is_empty() || exists("session")?;
    Ok(is_known.then(|| places.into()))
}

fn add(
    database: &ReadDatabase,
    table: &str,
    session: &str,
    order: &str,
    places: &mut Vec<Place>,
) -> Result<(), ReadError> {
    let schema = database.schema();
    if !schema.has(table, "session_id") {
        return Ok(());
    }
    let order = or_null(schema, table, order);
    let mut statement = database
        .connection()
        .prepare(&format!("SELECT rowid, {order} FROM {table} WHERE session_id = ?1 ORDER BY {order}, id"))?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        places.push(Place {
            order: integer_of(row, 1)?.unwrap_or(0),
            is_v2: table == "session_message",
            rowid: row.get(0)?,
        });
    }
    Ok(())
}

/// The message of an id; where both layouts hold one, the 2.x row.
pub(super) fn of_message(database: &ReadDatabase, id: &str) -> Result<Option<Place>, ReadError> {
    for (table, is_v2) in [("session_message", true), ("message", false)] {
        if !database.schema().has(table, "id") {
            continue;
        }
        let mut statement =
            database.connection().prepare(&format!("SELECT rowid FROM {table} WHERE id = ?1"))?;
        if let Some(rowid) = statement.query_row([id], |row| row.get(0)).optional()? {
            return Ok(Some(Place { order: 0, is_v2, rowid }));
        }
    }
    Ok(None)
}
