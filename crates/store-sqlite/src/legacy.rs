//! The journal of earlier hosts, and its removal (C29).
//!
//! The host once copied every change of a message or turn into tables of their own. The rows of those tables are copies; what they are copies of
//! stays. Nothing is read, decoded or deleted row by row: the tables are dropped by name.

use rusqlite::Connection;

/// The triggers that wrote the journal.
const TRIGGERS: [&str; 7] = [
    "conversation_message_insert",
    "conversation_message_update",
    "conversation_message_delete",
    "conversation_turn_insert",
    "conversation_turn_complete",
    "conversation_turn_delete",
    "conversation_session_delete",
];

/// Its tables; their indexes go with them.
const TABLES: [&str; 5] = [
    "conversation_session_events",
    "conversation_message_versions",
    "conversation_turn_versions",
    "conversation_session_streams",
    "conversation_journal_meta",
];

/// The statements that remove what of the journal is in the file: triggers first, so that none writes into a table that is gone. A trigger counts only where
/// it hangs on a table of the host, a table only where it is one: a view or another program's trigger of that name stays.
pub(crate) fn removal(db: &Connection) -> rusqlite::Result<Vec<String>> {
    Ok(parts(db)?.into_iter().map(|(kind, name)| format!("DROP {kind} main.{name}")).collect())
}

/// What of the journal is in the file: `TRIGGER` or `TABLE`, and the name.
pub(crate) fn parts(db: &Connection) -> rusqlite::Result<Vec<(&'static str, &'static str)>> {
    let mut parts = Vec::new();
    let mut trigger = db.prepare(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = ?1 COLLATE NOCASE
             AND tbl_name COLLATE NOCASE IN ('task_sessions', 'task_session_messages', 'task_session_turns'))",
    )?;
    for name in TRIGGERS {
        if trigger.query_row([name], |row| row.get(0))? {
            parts.push(("TRIGGER", name));
        }
    }
    let mut table = db.prepare(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE)",
    )?;
    for name in TABLES {
        if table.query_row([name], |row| row.get(0))? {
            parts.push(("TABLE", name));
        }
    }
    Ok(parts)
}
