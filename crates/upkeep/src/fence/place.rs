//! Where a session stands, and what its rows claim.

use headwater_model::SessionId;
use headwater_prune::decide::SessionState;
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use super::Storage;
use crate::schema::Schema;

/// Directory, project and workspace of a session, as its row has them. A caller holds the one that a preview or plan was made with;
/// under the lock the stored one must be equal (P8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPlace {
    /// The session.
    pub session: SessionId,
    /// Which tables hold it.
    pub storage: Storage,
    /// Its directory.
    pub directory: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// Its workspace; absent also where the database has no such column.
    pub workspace: Option<String>,
}

impl SessionPlace {
    /// Reads the place of `session` in the tables of `storage`; `None` where it has no row there.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn find(
        connection: &Connection,
        schema: &Schema,
        storage: Storage,
        session: &SessionId,
    ) -> rusqlite::Result<Option<Self>> {
        let table = storage.session_table();
        if !schema.has(table, "id") {
            return Ok(None);
        }
        let column = |name| if schema.has(table, name) { name } else { "NULL" };
        let sql = format!(
            "SELECT {}, {}, {} FROM {table} WHERE id = ?1",
            column("directory"),
            column("project_id"),
            column("workspace_id")
        );
        connection
            .prepare_cached(&sql)?
            .query_row([session.as_str()], |row| {
                Ok(Self {
                    session: session.clone(),
                    storage,
                    directory: row.get(0)?,
                    project: row.get(1)?,
                    workspace: row.get(2)?,
                })
            })
            .optional()
    }
}

/// What the rows of `session` in every layout say together.
pub(super) fn state(
    connection: &Connection,
    schema: &Schema,
    session: &SessionId,
) -> rusqlite::Result<SessionState> {
    let mut state = SessionState::default();
    for table in ["session", "session_v2"] {
        state = state.or(row_state(connection, schema, table, session)?);
    }
    for (table, condition) in
        [("session_inbox", ""), ("session_pending", ""), ("session_input", " AND promoted_seq IS NULL")]
    {
        let is_known =
            schema.has(table, "session_id") && (condition.is_empty() || schema.has(table, "promoted_seq"));
        if is_known {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE session_id = ?1{condition})");
            state.input_waiting |= exists(connection, &sql, session)?;
        }
    }
    if schema.has("event_sequence", "owner_id") {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM event_sequence WHERE aggregate_id = ?1 AND owner_id IS NOT NULL)";
        state.owned_elsewhere = exists(connection, sql, session)?;
    }
    Ok(state)
}

fn row_state(
    connection: &Connection,
    schema: &Schema,
    table: &'static str,
    session: &SessionId,
) -> rusqlite::Result<SessionState> {
    if !schema.has(table, "id") {
        return Ok(SessionState::default());
    }
    let is_set = |name: &str| {
        if schema.has(table, name) { format!("{name} IS NOT NULL") } else { "0".to_owned() }
    };
    let sql = format!(
        "SELECT {}, {}, {} FROM {table} WHERE id = ?1",
        is_set("time_suspended"),
        is_set("time_compacting"),
        is_set("revert")
    );
    let found = connection
        .prepare_cached(&sql)?
        .query_row([session.as_str()], |row| {
            Ok(SessionState {
                suspended: row.get(0)?,
                compacting: row.get(1)?,
                revert_staged: row.get(2)?,
                ..SessionState::default()
            })
        })
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Whether any event row of the session is stored: 0 or 1.
pub(super) fn retained_events(
    connection: &Connection,
    schema: &Schema,
    session: &SessionId,
) -> rusqlite::Result<u64> {
    if !schema.has("event", "aggregate_id") {
        return Ok(0);
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM event WHERE aggregate_id = ?1)";
    Ok(u64::from(exists(connection, sql, session)?))
}

fn exists(connection: &Connection, sql: &str, session: &SessionId) -> rusqlite::Result<bool> {
    connection.prepare_cached(sql)?.query_row([session.as_str()], |row| row.get(0))
}
