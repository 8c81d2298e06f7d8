//! What is wrong, or odd, in a database.

use headwater_store::transfer::{StoredRow, Table};
use headwater_store::{EXAMPLES_MAX, Fault, Finding, rules};
use tokio_postgres::{Client, Error};

use crate::inspect;

/// Looks at triggers, references and numbers.
pub(crate) async fn check(client: &Client) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    findings.extend(named(Fault::Triggers, inspect::other_triggers(client).await?));
    let journal = inspect::journal(client).await?;
    findings.extend(named(Fault::Journal, journal.iter().map(|part| part.name.to_owned()).collect()));
    for (fault, table, key, condition) in CONDITIONS {
        let count = client.query_one(&format!("SELECT count(*) FROM {table} WHERE {condition}"), &[]).await?;
        let count: i64 = count.try_get(0)?;
        if count == 0 {
            continue;
        }
        let sql = format!(
            "SELECT {key} FROM {table} WHERE {condition} ORDER BY {key} COLLATE \"C\" LIMIT {EXAMPLES_MAX}"
        );
        let rows = client.query(&sql, &[]).await?;
        let examples = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        findings.extend(fault.found(Some(table), count.unsigned_abs(), examples));
    }
    Ok(findings)
}

fn named(fault: Fault, mut names: Vec<String>) -> Option<Finding> {
    let count = names.len() as u64;
    names.truncate(EXAMPLES_MAX);
    fault.found(None, count, names)
}

/// Fault, table, key, and the condition under which a row shows it.
const CONDITIONS: [(Fault, &str, &str, &str); 6] = [
    (
        Fault::Orphans,
        "task_sessions",
        "id",
        "NOT EXISTS (SELECT 1 FROM tasks p WHERE p.id = task_sessions.task_id)",
    ),
    (
        Fault::Orphans,
        "task_session_turns",
        "id",
        "NOT EXISTS (SELECT 1 FROM task_sessions p WHERE p.id = task_session_turns.task_session_id)",
    ),
    (
        Fault::Orphans,
        "task_session_messages",
        "id",
        "NOT EXISTS (SELECT 1 FROM task_sessions p WHERE p.id = task_session_messages.task_session_id)
         OR NOT EXISTS (SELECT 1 FROM task_session_turns p WHERE p.id = task_session_messages.turn_id)",
    ),
    (
        Fault::OrphanRevisions,
        "conversation_session_revisions",
        "session_id",
        "NOT EXISTS (SELECT 1 FROM task_sessions p WHERE p.id = session_id)",
    ),
    (
        Fault::OrphanPromptNumbers,
        "task_session_prompt_seq",
        "task_session_id",
        "NOT EXISTS (SELECT 1 FROM task_sessions p WHERE p.id = task_session_prompt_seq.task_session_id)",
    ),
    (
        Fault::PromptNumbers,
        "task_session_messages",
        "id",
        "author_type = 'user' AND prompt_seq > 0 AND (
             prompt_seq > coalesce((SELECT last_seq FROM task_session_prompt_seq q
                 WHERE q.task_session_id = task_session_messages.task_session_id), 0)
             OR (task_session_id, prompt_seq) IN (SELECT task_session_id, prompt_seq FROM task_session_messages
                 WHERE author_type = 'user' GROUP BY 1, 2 HAVING count(*) > 1))",
    ),
];

/// Whether the metadata of a row is text and no JSON object.
pub(crate) fn has_bad_metadata(row: &StoredRow) -> bool {
    debug_assert!(row.table != Table::PromptSeq, "it has no metadata");
    row.text("metadata").is_some_and(|text| !text.is_empty() && rules::Metadata::parse(text).is_err())
}

/// Adds an example while there is room.
pub(crate) fn example(examples: &mut Vec<String>, key: Option<&str>) {
    if examples.len() < EXAMPLES_MAX {
        examples.extend(key.map(str::to_owned));
    }
}
