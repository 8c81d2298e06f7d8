//! What a file must have before the store works with it.
//!
//! Opening reads no message and no turn (C2), but once: where an index of the order is missing in a file that another program made, it is
//! built.

use std::path::PathBuf;

use refinery::{Runner, Target};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::order::order_time;

/// The triggers that raise revisions.
const TRIGGERS: &str = include_str!("../sql/revision_triggers.sql");

/// Why a file could not be opened as a conversation store.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", .path.display())]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// What was in the way.
    #[source]
    pub kind: OpenErrorKind,
}

/// What was in the way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// The file cannot be read or written.
    #[error("cannot be opened")]
    Sqlite(#[from] rusqlite::Error),
    /// The schema could not be brought up to date, or is newer than this program.
    #[error("the schema cannot be brought up to date")]
    Schema(#[from] refinery::Error),
    /// The file system or the source of randomness failed.
    #[error("cannot be opened")]
    Io(#[from] std::io::Error),
}

/// Brings the schema up to date. Each step is a transaction of its own and safe to repeat.
pub(crate) fn prepare(db: &mut Connection) -> Result<(), OpenErrorKind> {
    migrations().run(db)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    ensure_columns(&transaction)?;
    ensure_triggers(&transaction)?;
    ensure_indexes(&transaction)?;
    transaction.commit()?;
    Ok(())
}

fn migrations() -> Runner {
    mod embedded {
        refinery::embed_migrations!("migrations");
    }
    embedded::migrations::runner().set_grouped(true).set_abort_missing(true).set_target(Target::Latest)
}

/// Columns that older files of the host lack.
fn ensure_columns(db: &Transaction<'_>) -> rusqlite::Result<()> {
    let added = [
        ("task_session_messages", "prompt_seq", "INTEGER NOT NULL DEFAULT 0"),
        ("task_session_messages", "updated_at", "TIMESTAMP"),
        ("task_sessions", "name", "TEXT NOT NULL DEFAULT ''"),
    ];
    for (table, column, declared) in added {
        let exists = "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE)";
        if !db.query_row(exists, [table, column], |row| row.get::<_, bool>(0))? {
            db.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {declared}"))?;
        }
    }
    Ok(())
}

/// Puts the triggers in place where they are not there to the letter: a trigger of the same name that does something else would count
/// a change twice or not at all.
fn ensure_triggers(db: &Transaction<'_>) -> rusqlite::Result<()> {
    for wanted in TRIGGERS.split_inclusive("END;").map(statement).filter(|sql| !sql.is_empty()) {
        let name = wanted.split_whitespace().nth(2).unwrap_or_default();
        let stored: Option<String> = db
            .prepare_cached("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?1")?
            .query_map([name], |row| row.get(0))?
            .next()
            .transpose()?;
        if stored.as_deref() != Some(wanted) {
            db.execute_batch(&format!("DROP TRIGGER IF EXISTS {name}; {wanted};"))?;
        }
    }
    Ok(())
}

/// The statement in a piece of the file, without the comment before it and the semicolon behind it.
fn statement(piece: &str) -> &str {
    piece.find("CREATE TRIGGER").map_or("", |start| piece[start..].trim_end().trim_end_matches(';'))
}

/// The indexes of the order (C34). That of messages has the name and expression of the host's own. Prompts have one more, so that a page
/// of them costs the same however much the agent wrote in between.
fn ensure_indexes(db: &Transaction<'_>) -> rusqlite::Result<()> {
    let [created, started] = ["created_at", "started_at"].map(order_time);
    db.execute_batch(&format!(
        "CREATE INDEX IF NOT EXISTS idx_messages_prompt_order ON task_session_messages (task_session_id, ({created}), id);
         CREATE INDEX IF NOT EXISTS headwater_prompts_order ON task_session_messages (task_session_id, ({created}), id)
             WHERE author_type = 'user';
         CREATE INDEX IF NOT EXISTS headwater_turns_order ON task_session_turns (task_session_id, ({started}), id);"
    ))
}
