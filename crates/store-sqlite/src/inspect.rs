//! Whose file it is, and what it would take to work with it. Only reads.

use headwater_model::ByteCount;
use headwater_store::transfer::Table;
use headwater_store::{Inspection, JournalKind, JournalPart, ReadError, Standing};
use rusqlite::Connection;

use crate::failure::read_error;
use crate::{legacy, schema};

/// Tables without which a file is no host's.
const HISTORY: [Table; 3] = [Table::Sessions, Table::Turns, Table::Messages];

/// Looks at the schema of the file behind `db`.
///
/// # Errors
/// [`ReadError`] where it cannot be read.
pub fn inspect(db: &Connection) -> Result<Inspection, ReadError> {
    look(db).map_err(read_error)
}

fn look(db: &Connection) -> rusqlite::Result<Inspection> {
    let standing = standing(db)?;
    let mut found = Inspection::of(standing);
    if !matches!(standing, Standing::Host | Standing::Ours) {
        return Ok(found);
    }
    for (kind, name) in legacy::parts(db)? {
        let (kind, bytes) = if kind == "TABLE" {
            (JournalKind::Table, bytes_of(db, name)?)
        } else {
            (JournalKind::Trigger, 0)
        };
        found.journal.push(JournalPart { kind, name, bytes: ByteCount::new(bytes) });
    }
    for table in HISTORY {
        let present = columns(db, table.name())?;
        let lacking = table.columns().iter().filter(|(name, _)| !present.contains(&(*name).to_owned()));
        found.missing.extend(lacking.map(|(name, _)| format!("{}.{name}", table.name())));
    }
    for table in ["tasks", "task_session_prompt_seq", "conversation_session_revisions"] {
        if !has_table(db, table)? {
            found.missing.push(table.to_owned());
        }
    }
    found.triggers = schema::other_trigger_names(db)?;
    Ok(found)
}

fn standing(db: &Connection) -> rusqlite::Result<Standing> {
    // The first thing that is made is the list of migrations: a run that ended there has made nothing else.
    let tables: i64 = db.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('refinery_schema_history', 'sqlite_sequence')",
        [],
        |row| row.get(0),
    )?;
    if tables == 0 {
        return Ok(Standing::Empty);
    }
    if has_table(db, "refinery_schema_history")? {
        let sql = "SELECT max(version), max(version = 1 AND name = ?1) FROM refinery_schema_history";
        let found = db.query_row(sql, [schema::FIRST], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (newest, is_ours): (Option<i64>, Option<bool>) = found;
        if is_ours == Some(true) {
            return Ok(if newest > Some(schema::VERSION) { Standing::Newer } else { Standing::Ours });
        }
    }
    let mut is_host = true;
    for table in HISTORY {
        is_host &= has_table(db, table.name())?;
    }
    if is_host {
        return Ok(Standing::Host);
    }
    let is_opencode = has_table(db, "session")?
        && (has_table(db, "message")? || has_table(db, "session_message")? || has_table(db, "part")?);
    Ok(Standing::Foreign { is_opencode })
}

fn has_table(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE)";
    db.prepare_cached(sql)?.query_row([name], |row| row.get(0))
}

/// The columns of a table, in lower case; none where there is no such table.
pub(crate) fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare_cached("SELECT lower(name) FROM pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// Bytes of the pages of a table and its indexes.
fn bytes_of(db: &Connection, table: &str) -> rusqlite::Result<u64> {
    let names =
        "SELECT name FROM sqlite_schema WHERE tbl_name = ?1 COLLATE NOCASE AND type IN ('table', 'index')";
    let names: Vec<String> =
        db.prepare(names)?.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut pages =
        db.prepare("SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = ?1 AND aggregate = TRUE")?;
    let mut bytes = 0;
    for name in names {
        bytes += pages.query_row([name], |row| row.get::<_, i64>(0))?.unsigned_abs();
    }
    Ok(bytes)
}
