//! What is wrong, or odd, in a file.

use headwater_store::transfer::{Holds, Owner, Table, Value};
use headwater_store::{EXAMPLES_MAX, Fault, Finding};
use rusqlite::{Connection, Result};

use crate::order::order_time;
use crate::{legacy, rows, schema, stored};

/// Looks at every page and every row.
pub(crate) fn check(db: &Connection) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let damage = lines(db, "PRAGMA integrity_check(100)")?;
    let damage: Vec<String> = damage.into_iter().filter(|line| line != "ok").collect();
    findings.extend(Fault::DamagedPages.found(None, damage.len() as u64, Vec::new()));
    findings.extend(named(Fault::Triggers, schema::other_trigger_names(db)?));
    let journal = legacy::parts(db)?.into_iter().map(|(_, name)| name.to_owned());
    findings.extend(named(Fault::Journal, journal.collect()));
    for (fault, table, condition) in conditions() {
        let (name, key) = (table.name(), table.key());
        let found = rows_where(db, name, key, &condition)?;
        findings.extend(fault.found(Some(name), found.0, found.1));
    }
    for table in [Table::Sessions, Table::Turns, Table::Messages] {
        let (count, examples) = broken_text(db, table)?;
        findings.extend(Fault::BrokenText.found(Some(table.name()), count, examples));
    }
    let orphans = "NOT EXISTS (SELECT 1 FROM task_sessions s WHERE s.id = session_id)";
    let (count, examples) = rows_where(db, "conversation_session_revisions", "session_id", orphans)?;
    findings.extend(Fault::OrphanRevisions.found(Some("conversation_session_revisions"), count, examples));
    Ok(findings)
}

fn named(fault: Fault, mut names: Vec<String>) -> Option<Finding> {
    let count = names.len() as u64;
    names.truncate(EXAMPLES_MAX);
    fault.found(None, count, names)
}

/// The conditions under which a row shows a fault.
fn conditions() -> Vec<(Fault, Table, String)> {
    let lacks = |parent: &str, column: &str, table: Table| {
        format!("NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = {}.{column})", table.name())
    };
    let mut conditions = vec![
        (Fault::Orphans, Table::Sessions, lacks("tasks", "task_id", Table::Sessions)),
        (Fault::Orphans, Table::Turns, lacks("task_sessions", "task_session_id", Table::Turns)),
        (
            Fault::Orphans,
            Table::Messages,
            format!(
                "{} OR {}",
                lacks("task_sessions", "task_session_id", Table::Messages),
                lacks("task_session_turns", "turn_id", Table::Messages)
            ),
        ),
        (
            Fault::OrphanPromptNumbers,
            Table::PromptSeq,
            lacks("task_sessions", "task_session_id", Table::PromptSeq),
        ),
        (
            Fault::PromptNumbers,
            Table::Messages,
            "author_type = 'user' AND prompt_seq > 0 AND (
                 prompt_seq > coalesce((SELECT last_seq FROM task_session_prompt_seq q
                     WHERE q.task_session_id = task_session_messages.task_session_id), 0)
                 OR (task_session_id, prompt_seq) IN (SELECT task_session_id, prompt_seq FROM task_session_messages
                     WHERE author_type = 'user' GROUP BY 1, 2 HAVING count(*) > 1))"
                .to_owned(),
        ),
    ];
    for table in [Table::Sessions, Table::Turns, Table::Messages] {
        let columns = table.columns().iter();
        let times = columns.clone().filter(|(_, holds)| *holds == Holds::Time).map(|(name, _)| {
            // What never happened, or an older file does not know, is no fault.
            let may_be_empty = matches!(*name, "completed_at" | "updated_at");
            let given = if may_be_empty { format!("{name} IS NOT NULL AND ") } else { String::new() };
            format!("({given}{} IS NULL)", order_time(name))
        });
        conditions.push((Fault::UnreadableTimes, table, times.collect::<Vec<_>>().join(" OR ")));
        let metadata = "metadata <> '' AND CASE WHEN json_valid(metadata) THEN json_type(metadata) <> 'object' ELSE TRUE END";
        conditions.push((Fault::InvalidMetadata, table, metadata.to_owned()));
    }
    conditions
}

/// How many rows of a table meet a condition, and the first of their keys.
fn rows_where(db: &Connection, table: &str, key: &str, condition: &str) -> Result<(u64, Vec<String>)> {
    let count: i64 =
        db.query_row(&format!("SELECT count(*) FROM {table} WHERE {condition}"), [], |row| row.get(0))?;
    let examples = if count == 0 {
        Vec::new()
    } else {
        lines(
            db,
            &format!("SELECT {key} FROM {table} WHERE {condition} ORDER BY {key} LIMIT {EXAMPLES_MAX}"),
        )?
    };
    Ok((count.unsigned_abs(), examples))
}

/// How many rows of a table hold text that is not UTF-8, and the first of their keys.
fn broken_text(db: &Connection, table: Table) -> Result<(u64, Vec<String>)> {
    let has = stored::has(db, table)?;
    let (mut count, mut examples) = (0, Vec::new());
    let mut statement = db.prepare(&stored::select(table, Owner::Everything, &has))?;
    let mut found = statement.query([""])?;
    while let Some(row) = found.next()? {
        let row = stored::row(row, table, &has)?;
        if row.values.iter().any(|value| matches!(value, Value::BrokenText(_))) {
            count += 1;
            if examples.len() < EXAMPLES_MAX {
                examples.extend(row.key().map(str::to_owned));
            }
        }
    }
    Ok((count, examples))
}

fn lines(db: &Connection, sql: &str) -> Result<Vec<String>> {
    db.prepare(sql)?.query_map([], |row| rows::text(row, 0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test plays the other program")]
    fn what_is_odd_is_found_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.db");
        let mut db = Connection::open(&path).unwrap();
        db.execute_batch(include_str!("../tests/host/tables.sql")).unwrap();
        schema::prepare(&mut db, &path, &mut |_| Ok(())).unwrap();
        let codes = |db: &Connection| -> Vec<_> {
            check(db).unwrap().into_iter().map(|found| (found.code, found.count)).collect()
        };
        let odd = vec![("unreadable-times", 1), ("invalid-metadata", 1), ("broken-text", 1)];
        assert_eq!(codes(&db), odd);
        db.execute_batch(
            "PRAGMA foreign_keys = OFF; DELETE FROM task_sessions; DROP TRIGGER conversation_source_turn_insert;
             INSERT INTO conversation_session_revisions VALUES ('gone', 3);",
        )
        .unwrap();
        let codes = codes(&db);
        for fault in [("triggers", 1), ("orphans", 1), ("orphans", 4), ("orphan-revisions", 1)] {
            assert!(codes.contains(&fault), "{codes:?}");
        }
    }
}
