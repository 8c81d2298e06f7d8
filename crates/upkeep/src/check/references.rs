//! Rows that name rows that are gone.

use rusqlite::ErrorCode;

use super::watch::watched;
use super::{Check, Code};
use crate::reading::{ReadError, short, text_of};

/// Foreign keys as the schema declares them. OpenCode's cascade is on only in its own connections (fact A1).
pub(super) fn foreign_keys(check: &mut Check<'_>) -> Result<(), ReadError> {
    let connection = check.database.connection();
    let findings = &mut check.findings;
    let outcome = watched(connection, check.observer, "checking references", None, || {
        let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let table: String = row.get(0)?;
            let rowid: Option<i64> = row.get(1)?;
            let parent: String = row.get(2)?;
            let rowid = rowid.map_or_else(|| "a row".to_owned(), |rowid| format!("row {rowid}"));
            findings.add(Code::ForeignKey, Some(&table), &format!("{rowid} names nothing in {parent}"));
        }
        Ok(())
    });
    match outcome {
        // The schema itself declares a key that cannot be one: "foreign key mismatch".
        Err(ReadError::Sqlite(error)) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
            check.findings.add(
                Code::ForeignKey,
                None,
                "the schema declares a foreign key without a unique target",
            );
            Ok(())
        }
        outcome => outcome,
    }
}

/// Tables whose rows belong to a session, with the column that names it and what it means when the session is gone.
const OF_SESSION: [(&str, &str, Code); 12] = [
    ("message", "session_id", Code::MessageWithoutSession),
    ("session_message", "session_id", Code::MessageWithoutSession),
    ("event", "aggregate_id", Code::EventsWithoutSession),
    ("event_sequence", "aggregate_id", Code::SequenceWithoutSession),
    ("todo", "session_id", Code::RowWithoutSession),
    ("session_share", "session_id", Code::RowWithoutSession),
    ("session_input", "session_id", Code::RowWithoutSession),
    ("session_context_epoch", "session_id", Code::RowWithoutSession),
    ("session_inbox", "session_id", Code::RowWithoutSession),
    ("session_pending", "session_id", Code::RowWithoutSession),
    ("instruction_entry", "session_id", Code::RowWithoutSession),
    ("instruction_state", "session_id", Code::RowWithoutSession),
];

/// Rows whose session or message is gone from both layouts, whatever keys the schema declares.
pub(super) fn orphans(check: &mut Check<'_>) -> Result<(), ReadError> {
    if check.has("part", "message_id") && check.has("message", "id") {
        let sql = format!(
            "SELECT {}, 1 FROM part WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.id = part.message_id)",
            short(check.database.schema(), "part", "id"),
        );
        add(check, &sql, Code::PartWithoutMessage, "part")?;
    }
    let known: Vec<String> = ["session", "session_v2"]
        .into_iter()
        .filter(|table| check.has(table, "id"))
        .map(|table| format!("NOT EXISTS (SELECT 1 FROM {table} s WHERE s.id = owner)"))
        .collect();
    for (table, column, code) in OF_SESSION {
        if check.has(table, column) {
            let owner = short(check.database.schema(), table, column);
            let sql = format!(
                "SELECT owner, rows FROM (SELECT {owner} AS owner, count(*) AS rows FROM {table} GROUP BY {column}) WHERE {}",
                known.join(" AND ")
            );
            add(check, &sql, code, table)?;
        }
    }
    Ok(())
}

/// Adds what `sql` yields: an id, and how many rows it stands for.
fn add(check: &mut Check<'_>, sql: &str, code: Code, table: &'static str) -> Result<(), ReadError> {
    let connection = check.database.connection();
    let findings = &mut check.findings;
    watched(connection, check.observer, "checking references", None, || {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = text_of(row, 0)?.unwrap_or_else(|| "a row without a usable id".to_owned());
            findings.add_many(code, Some(table), row.get::<_, i64>(1)?.unsigned_abs(), &id);
        }
        Ok(())
    })
}
