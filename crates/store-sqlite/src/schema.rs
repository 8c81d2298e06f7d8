//! What a file must have before the store works with it.
//!
//! Opening reads no message and no turn (C2), but once: where an index of the order is missing in a file that another program made, it is
//! built.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refinery::{Runner, Target};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::order::order_time;
use crate::{backup, legacy};

/// The triggers that raise revisions.
const TRIGGERS: &str = include_str!("../sql/revision_triggers.sql");

/// Why a file could not be opened as a conversation store. What was in it is as it was.
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
    #[error("cannot be opened as a conversation store")]
    Sqlite(#[from] rusqlite::Error),
    /// The schema is newer than this program, or could not be brought up to date.
    #[error("the schema cannot be brought up to date; a newer version of the program may have written it")]
    Schema(#[from] refinery::Error),
    /// The file system or the source of randomness failed.
    #[error("cannot be opened as a conversation store")]
    Io(#[from] std::io::Error),
    /// Another program holds the file.
    #[error("another program holds the file; try again when it is done")]
    Busy,
    /// The copy that was made before the journal is removed is damaged, and so the journal stays.
    #[error("the copy made before the journal is removed is damaged; check the file")]
    Backup,
}

/// What an error of SQLite comes down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another program holds the file.
    Busy,
    /// The file or its folder cannot be written or read by this user.
    Denied,
    /// The disk is full.
    Full,
    /// The file is damaged, or no database.
    Damaged,
    /// The schema is newer than this program.
    Newer,
    /// Something else.
    Other,
}

impl OpenErrorKind {
    /// What it comes down to, wherever in the chain of errors that stands.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Busy => return Cause::Busy,
            Self::Backup => return Cause::Damaged,
            Self::Io(error) => return of_io(error.kind()),
            Self::Sqlite(_) | Self::Schema(_) => {}
        }
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = next {
            if let Some(code) =
                error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code)
            {
                return of_code(code);
            }
            next = error.source();
        }
        if matches!(self, Self::Schema(_)) { Cause::Newer } else { Cause::Other }
    }
}

fn of_code(code: rusqlite::ErrorCode) -> Cause {
    use rusqlite::ErrorCode;
    match Some(code) {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Cause::Busy,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => Cause::Denied,
        Some(ErrorCode::DiskFull) => Cause::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Cause::Damaged,
        _ => Cause::Other,
    }
}

fn of_io(kind: std::io::ErrorKind) -> Cause {
    match Some(kind) {
        Some(std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem) => Cause::Denied,
        Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) => Cause::Full,
        _ => Cause::Other,
    }
}

/// What bringing a schema up to date did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upgrade {
    /// The statements that removed the journal of an earlier host; none where there was none.
    pub removed: Vec<String>,
    /// The copy of the file made before that.
    pub backup: Option<PathBuf>,
    /// How long the transaction took that removed it and put the triggers in place; the copy is made before.
    pub changed_in: Duration,
    /// Triggers that were put in place, by name.
    pub triggers: Vec<String>,
    /// Sessions that are gone while turns, messages or a revision of theirs are left: a program that does not heed foreign keys removed them. Nobody sees those
    /// rows.
    pub orphaned_sessions: u64,
}

/// Is told before each statement of the upgrade; tests stop it there.
pub(crate) type Reached<'a> = &'a mut dyn FnMut(&str) -> rusqlite::Result<()>;

/// Brings the schema of the file at `path` up to date. First the tables that are missing are made, empty, in a transaction of their own. Then
/// one transaction removes the journal and puts the triggers in its place (C29): where anything fails, every row and the journal are as
/// they were, and what is there already is not done again.
pub(crate) fn prepare(
    db: &mut Connection,
    path: &Path,
    reached: Reached<'_>,
) -> Result<Upgrade, OpenErrorKind> {
    let mut upgrade = Upgrade::default();
    if !legacy::removal(db)?.is_empty() {
        upgrade.backup = Some(backup::beside(db, path)?);
    }
    migrations().run(db)?;
    // Overwriting the freed pages would take fifteen times as long; until the file is compacted they keep the old text (C40). Afterwards
    // the connection is as SQLite was built.
    let overwrites: i64 = db.pragma_query_value(None, "secure_delete", |row| row.get(0))?;
    db.pragma_update(None, "secure_delete", false)?;
    let begun = Instant::now();
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    ensure_columns(&transaction, reached)?;
    upgrade.removed = legacy::removal(&transaction)?;
    for statement in &upgrade.removed {
        reached(statement)?;
        transaction.execute_batch(statement)?;
    }
    upgrade.triggers = ensure_triggers(&transaction, reached)?;
    ensure_indexes(&transaction, reached)?;
    reached("COMMIT")?;
    transaction.commit()?;
    upgrade.changed_in = begun.elapsed();
    db.pragma_update(None, "secure_delete", overwrites)?;
    upgrade.orphaned_sessions = orphaned_sessions(db)?;
    Ok(upgrade)
}

/// Counts them with one step into an index for each session; no row is read.
fn orphaned_sessions(db: &Connection) -> rusqlite::Result<u64> {
    let mut steps = Vec::new();
    let mut named = Vec::new();
    for (number, table) in ["task_session_messages", "task_session_turns"].iter().enumerate() {
        steps.push(format!(
            "named{number} (id) AS (SELECT min(task_session_id) FROM {table} UNION ALL
                 SELECT (SELECT min(task_session_id) FROM {table} WHERE task_session_id > named{number}.id) FROM named{number} WHERE id IS NOT NULL)"
        ));
        named.push(format!("SELECT id FROM named{number} WHERE id IS NOT NULL"));
    }
    named.push("SELECT session_id FROM conversation_session_revisions".to_owned());
    let sql = format!(
        "WITH RECURSIVE {} SELECT count(*) FROM ({}) WHERE id NOT IN (SELECT id FROM task_sessions)",
        steps.join(", "),
        named.join(" UNION ")
    );
    db.query_row(&sql, [], |row| row.get(0)).map(i64::unsigned_abs)
}

/// Puts the triggers in place where they are not as they should be.
pub(crate) fn put_triggers_in_place(db: &Connection) -> rusqlite::Result<()> {
    ensure_triggers(db, &mut |_| Ok(())).map(drop)
}

/// The version of the schema, and whether all triggers are in place.
pub(crate) fn look(db: &Connection) -> rusqlite::Result<(i64, bool)> {
    let in_place = other_triggers(db)?.is_empty();
    Ok((db.pragma_query_value(None, "schema_version", |row| row.get(0))?, in_place))
}

/// The newest schema that this program knows, and the name of the first.
pub(crate) const VERSION: i64 = 1;
pub(crate) const FIRST: &str = "conversation_tables";

fn migrations() -> Runner {
    mod embedded {
        refinery::embed_migrations!("migrations");
    }
    embedded::migrations::runner().set_grouped(true).set_abort_missing(true).set_target(Target::Latest)
}

/// Columns that older files of the host lack.
fn ensure_columns(db: &Transaction<'_>, reached: Reached<'_>) -> rusqlite::Result<()> {
    let added = [
        ("task_session_messages", "prompt_seq", "INTEGER NOT NULL DEFAULT 0"),
        ("task_session_messages", "updated_at", "TIMESTAMP"),
        ("task_session_turns", "execution_profile_id", "TEXT NOT NULL DEFAULT ''"),
        ("task_session_turns", "route_generation", "BIGINT NOT NULL DEFAULT 0"),
        ("task_sessions", "name", "TEXT NOT NULL DEFAULT ''"),
    ];
    for (table, column, declared) in added {
        let exists = "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE)";
        if !db.query_row(exists, [table, column], |row| row.get::<_, bool>(0))? {
            let statement = format!("ALTER TABLE {table} ADD COLUMN {column} {declared}");
            reached(&statement)?;
            db.execute_batch(&statement)?;
        }
    }
    Ok(())
}

/// Puts the triggers in place where they are not there to the letter: a trigger of the same name that does something else would count
/// a change twice or not at all. Answers with the names of those.
fn ensure_triggers(db: &Connection, reached: Reached<'_>) -> rusqlite::Result<Vec<String>> {
    let mut placed = Vec::new();
    for wanted in other_triggers(db)? {
        let name = name(wanted);
        for statement in [&format!("DROP TRIGGER IF EXISTS main.{name}"), wanted] {
            reached(statement)?;
            db.execute_batch(statement)?;
        }
        placed.push(name.to_owned());
    }
    Ok(placed)
}

/// The names of the triggers that are not in place to the letter.
pub(crate) fn other_trigger_names(db: &Connection) -> rusqlite::Result<Vec<String>> {
    Ok(other_triggers(db)?.into_iter().map(|wanted| name(wanted).to_owned()).collect())
}

/// The statements of the triggers that are not in place to the letter.
fn other_triggers(db: &Connection) -> rusqlite::Result<Vec<&'static str>> {
    let mut other = Vec::new();
    for wanted in wanted_triggers() {
        if stored_trigger(db, wanted)?.as_deref() != Some(wanted) {
            other.push(wanted);
        }
    }
    Ok(other)
}

/// The statements that create the triggers.
fn wanted_triggers() -> impl Iterator<Item = &'static str> {
    TRIGGERS.split_inclusive("END;").map(statement).filter(|sql| !sql.is_empty())
}

/// The statement that created the trigger which has the name of that in `wanted`.
fn stored_trigger(db: &Connection, wanted: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?1 COLLATE NOCASE";
    db.prepare_cached(sql)?.query_map([name(wanted)], |row| row.get(0))?.next().transpose()
}

/// The name in a statement that creates a trigger.
fn name(statement: &str) -> &str {
    statement.split_whitespace().nth(2).unwrap_or_default()
}

/// The statement in a piece of the file, without the comment before it and the semicolon behind it.
fn statement(piece: &str) -> &str {
    piece.find("CREATE TRIGGER").map_or("", |start| piece[start..].trim_end().trim_end_matches(';'))
}

/// The indexes of the order (C34). That of messages has the name and expression of the host's own. Prompts have one more, so that a page
/// of them costs the same however much the agent wrote in between.
fn ensure_indexes(db: &Transaction<'_>, reached: Reached<'_>) -> rusqlite::Result<()> {
    let [created, started] = ["created_at", "started_at"].map(order_time);
    let messages = format!("task_session_messages (task_session_id, ({created}), id)");
    for (name, on) in [
        ("idx_messages_prompt_order", messages.clone()),
        ("headwater_prompts_order", format!("{messages} WHERE author_type = 'user'")),
        ("headwater_turns_order", format!("task_session_turns (task_session_id, ({started}), id)")),
        ("idx_messages_turn_id", "task_session_messages (turn_id)".to_owned()),
        ("idx_task_sessions_task_id", "task_sessions (task_id)".to_owned()),
    ] {
        let statement = format!("CREATE INDEX IF NOT EXISTS {name} ON {on}");
        reached(&statement)?;
        db.execute_batch(&statement)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
