//! Whose database it is, and what it would take to work with it. Only reads.

use headwater_model::ByteCount;
use headwater_store::transfer::Table;
use headwater_store::{Inspection, JournalKind, JournalPart, Standing};
use tokio_postgres::{Client, Error};

use crate::schema;

/// Tables without which a database is no host's.
const HISTORY: [Table; 3] = [Table::Sessions, Table::Turns, Table::Messages];

/// The journal, as `sql/adopt.sql` removes it.
const JOURNAL: [(JournalKind, &str); 14] = [
    (JournalKind::Trigger, "conversation_message_journal_trigger"),
    (JournalKind::Trigger, "conversation_turn_journal_trigger"),
    (JournalKind::Trigger, "conversation_session_delete_trigger"),
    (JournalKind::Function, "conversation_message_journal"),
    (JournalKind::Function, "conversation_turn_journal"),
    (JournalKind::Function, "conversation_session_delete_journal"),
    (JournalKind::Function, "conversation_next_sequence"),
    (JournalKind::Function, "conversation_safe_jsonb"),
    (JournalKind::Function, "conversation_visible_content"),
    (JournalKind::Table, "conversation_session_events"),
    (JournalKind::Table, "conversation_message_versions"),
    (JournalKind::Table, "conversation_turn_versions"),
    (JournalKind::Table, "conversation_session_streams"),
    (JournalKind::Table, "conversation_journal_meta"),
];

/// The triggers that raise revisions, and those of the host that must not be beside them.
const TRIGGERS: [(&str, bool); 10] = [
    ("headwater_messages_inserted", true),
    ("headwater_messages_updated", true),
    ("headwater_messages_deleted", true),
    ("headwater_messages_truncated", true),
    ("headwater_turns_inserted", true),
    ("headwater_turns_updated", true),
    ("headwater_turns_deleted", true),
    ("headwater_turns_truncated", true),
    ("conversation_source_message_revision_trigger", false),
    ("conversation_source_turn_revision_trigger", false),
];

/// Looks at the schema of the database behind `client`.
pub(crate) async fn inspect(client: &Client) -> Result<Inspection, Error> {
    let standing = standing(client).await?;
    let mut found = Inspection::of(standing);
    if !matches!(standing, Standing::Host | Standing::Ours) {
        return Ok(found);
    }
    found.journal = journal(client).await?;
    for table in HISTORY {
        let present = columns(client, table.name()).await?;
        let lacking = table.columns().iter().filter(|(name, _)| !present.contains(&(*name).to_owned()));
        found.missing.extend(lacking.map(|(name, _)| format!("{}.{name}", table.name())));
    }
    for table in ["tasks", "task_session_prompt_seq", "conversation_session_revisions"] {
        if !has_table(client, table).await? {
            found.missing.push(table.to_owned());
        }
    }
    found.triggers = other_triggers(client).await?;
    Ok(found)
}

/// What of the journal is there.
pub(crate) async fn journal(client: &Client) -> Result<Vec<JournalPart>, Error> {
    let mut parts = Vec::new();
    for (kind, name) in JOURNAL {
        let sql = match kind {
            JournalKind::Table => "SELECT pg_total_relation_size(oid)::bigint FROM pg_class WHERE oid = to_regclass($1) AND relkind = 'r'",
            JournalKind::Trigger => {
                "SELECT 0::bigint FROM pg_trigger WHERE tgname = $1::text AND tgrelid IN
                     (to_regclass('task_sessions'), to_regclass('task_session_turns'), to_regclass('task_session_messages')) LIMIT 1"
            }
            JournalKind::Function => {
                "SELECT 0::bigint FROM pg_proc WHERE proname = $1::text AND pg_function_is_visible(oid) LIMIT 1"
            }
        };
        if let Some(row) = client.query_opt(sql, &[&name]).await? {
            parts.push(JournalPart {
                kind,
                name,
                bytes: ByteCount::new(row.try_get::<_, i64>(0)?.unsigned_abs()),
            });
        }
    }
    Ok(parts)
}

/// Triggers that are missing or switched off, and those of the host that count once more.
pub(crate) async fn other_triggers(client: &Client) -> Result<Vec<String>, Error> {
    let sql = "SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A')
                   AND tgrelid IN (to_regclass('task_session_turns'), to_regclass('task_session_messages'))";
    let rows = client.query(sql, &[]).await?;
    let active = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    let other =
        TRIGGERS.iter().filter(|(name, is_wanted)| active.iter().any(|found| found == name) != *is_wanted);
    Ok(other.map(|(name, _)| (*name).to_owned()).collect())
}

async fn standing(client: &Client) -> Result<Standing, Error> {
    if has_table(client, "refinery_schema_history").await? {
        let sql = "SELECT max(version), bool_or(version = 1 AND name = $1) FROM refinery_schema_history";
        let row = client.query_one(sql, &[&schema::FIRST]).await?;
        let (newest, is_ours): (Option<i32>, Option<bool>) = (row.try_get(0)?, row.try_get(1)?);
        if is_ours == Some(true) {
            return Ok(if newest > Some(schema::VERSION) { Standing::Newer } else { Standing::Ours });
        }
    }
    let mut tables = 0;
    for table in HISTORY {
        tables += usize::from(has_table(client, table.name()).await?);
    }
    Ok(match tables {
        0 => Standing::Empty,
        3 => Standing::Host,
        _ => Standing::Foreign { is_opencode: false },
    })
}

async fn has_table(client: &Client, name: &str) -> Result<bool, Error> {
    client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await?.try_get(0)
}

/// The columns of a table; none where there is no such table.
pub(crate) async fn columns(client: &Client, table: &str) -> Result<Vec<String>, Error> {
    let sql = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
    let rows = client.query(sql, &[&table]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}
