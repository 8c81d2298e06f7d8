//! The second pass: everything that is shown of one session, read when its turn comes.

use headwater_model::UnixMillis;
use rusqlite::{OptionalExtension, Row};

use super::measure::Totals;
use super::roll::Roll;
use super::{SessionState, SessionSummary, TITLE_BYTES_MAX};
use crate::open::ReadDatabase;
use crate::reading::{ReadError, integer_of, is_set, or_null, short, text_of, text_prefix};
use crate::schema::Layouts;

/// The summary of the session at `position`; `None` where its row is gone.
pub(super) fn session(
    database: &ReadDatabase,
    roll: &Roll,
    position: usize,
    totals: Totals,
) -> Result<Option<SessionSummary>, ReadError> {
    let entry = roll.entry(position);
    let (table, rowid) = match (entry.v2, entry.v1) {
        (Some(rowid), _) => ("session_v2", rowid),
        (None, Some(rowid)) => ("session", rowid),
        (None, None) => return Ok(None),
    };
    let schema = database.schema();
    let mut statement = database.connection().prepare_cached(&format!(
        "SELECT {}, {}, {}, {}, {}, {}, {}, {} FROM {table} WHERE rowid = ?1",
        short(schema, table, "project_id"),
        short(schema, table, "directory"),
        short(schema, table, "version"),
        or_null(schema, table, "time_archived"),
        is_set(schema, table, "time_suspended"),
        is_set(schema, table, "time_compacting"),
        is_set(schema, table, "revert"),
        is_set(schema, table, "title"),
    ))?;
    let found = statement
        .query_row([rowid], |row| {
            let summary = SessionSummary {
                id: entry.id.to_string(),
                title: None,
                project: text_of(row, 0)?,
                directory: text_of(row, 1)?,
                parent: entry.parent.as_deref().map(str::to_owned),
                parent_missing: entry.parent_missing,
                children: u64::from(entry.children),
                layouts: Layouts { v1: entry.v1.is_some(), v2: entry.v2.is_some() },
                version: text_of(row, 2)?,
                created: entry.created,
                last_used: entry.last_used,
                archived: integer_of(row, 3)?.map(UnixMillis::new),
                messages: totals.messages(entry.v2.is_some()),
                bytes: totals.bytes(),
                state: state(row)?,
            };
            Ok((summary, row.get::<_, bool>(7)?))
        })
        .optional()?;
    let Some((mut summary, has_title)) = found else { return Ok(None) };
    if has_title {
        let (title, _) = text_prefix(database.connection(), table, "title", rowid, TITLE_BYTES_MAX)?;
        summary.title = Some(title);
    }
    summary.state.input_waiting = is_input_waiting(database, &entry.id)?;
    Ok(Some(summary))
}

fn state(row: &Row<'_>) -> rusqlite::Result<SessionState> {
    Ok(SessionState {
        executing: row.get(4)?,
        compacting: row.get(5)?,
        revert_staged: row.get(6)?,
        input_waiting: false,
    })
}

/// Tables whose rows say that input waits (facts A2, B3), each with its condition.
const WAITING: [(&str, &str); 3] =
    [("session_inbox", "1"), ("session_pending", "1"), ("session_input", "promoted_seq IS NULL")];

fn is_input_waiting(database: &ReadDatabase, id: &str) -> rusqlite::Result<bool> {
    for (table, condition) in WAITING {
        let needed = if condition == "1" { "session_id" } else { "promoted_seq" };
        if !(database.schema().has(table, "session_id") && database.schema().has(table, needed)) {
            continue;
        }
        let mut statement = database
            .connection()
            .prepare_cached(&format!("SELECT 1 FROM {table} WHERE session_id = ?1 AND {condition}"))?;
        if statement.exists([id])? {
            return Ok(true);
        }
    }
    Ok(false)
}
