//! Rows and bytes of every table. The large ones come from the walk; the others are counted here.

use headwater_model::ByteCount;
use rusqlite::Connection;

use super::pages::page_bytes;
use super::report::TableFigures;
use super::tally::{Count, Tally, WALKED};
use crate::plan::whole::{quoted, row_bytes};
use crate::schema::{KNOWN_TABLES, Schema};
use crate::survey::byte_length;

/// Tables with secrets: counted, never looked into (fact A2).
const SECRET: [&str; 5] = ["account", "account_state", "control_account", "credential", "session_share"];

/// The figures of every table, largest first. Rows that the walk did not reach, because what they name as their session is no usable
/// id, are added to `tally` as unreadable.
pub(super) fn tables(
    db: &Connection,
    schema: &Schema,
    tally: &mut Tally,
    with_pages: bool,
) -> rusqlite::Result<Vec<TableFigures>> {
    let mut figures = Vec::new();
    for (name, table) in schema.tables() {
        let is_virtual = !table.has_rowid && !is_without_rowid(db, name)?;
        let count = match WALKED.iter().position(|walked| walked == name) {
            _ if is_virtual => None,
            Some(place) => Some(reached(db, schema, place, tally)?),
            None => Some(counted(db, schema, name)?),
        };
        let is_open = count.is_some() && !SECRET.contains(&name.as_str());
        figures.push(TableFigures {
            name: name.clone(),
            rows: count.map_or(0, |count| count.rows),
            bytes: count.filter(|_| is_open).map(|count| ByteCount::new(count.bytes)),
            page_bytes: if with_pages { page_bytes(db, name)? } else { None },
            is_known: KNOWN_TABLES.iter().any(|(known, _)| known == name),
        });
    }
    figures.sort_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
    Ok(figures)
}

fn is_without_rowid(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    let mut statement = db.prepare_cached(
        "SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND name = ?1 AND type = 'table' AND wr = 1",
    )?;
    statement.exists([name])
}

/// What the walk saw of a table, and the rows that it did not reach.
fn reached(db: &Connection, schema: &Schema, place: usize, tally: &mut Tally) -> rusqlite::Result<Count> {
    let name = WALKED[place];
    let seen = tally.tables[place];
    let rows = row_count(db, name)?;
    if rows <= seen.rows {
        return Ok(seen);
    }
    let all = counted(db, schema, name)?;
    let missed =
        Count { rows: all.rows.saturating_sub(seen.rows), bytes: all.bytes.saturating_sub(seen.bytes) };
    tally.unreadable[place].merge(missed);
    tally.tables[place].merge(missed);
    Ok(tally.tables[place])
}

fn counted(db: &Connection, schema: &Schema, name: &str) -> rusqlite::Result<Count> {
    if SECRET.contains(&name) {
        return Ok(Count { rows: row_count(db, name)?, bytes: 0 });
    }
    // The inner SELECT keeps the payload out of the aggregate: octet_length reads no overflow page.
    let bytes = row_bytes(schema, name);
    let sql =
        format!("SELECT count(*), sum(n) FROM (SELECT {bytes} AS n FROM {} LIMIT -1 OFFSET 0)", quoted(name));
    db.query_row(&sql, [], |row| Ok(Count { rows: byte_length(row, 0)?, bytes: byte_length(row, 1)? }))
}

fn row_count(db: &Connection, name: &str) -> rusqlite::Result<u64> {
    db.query_row(&format!("SELECT count(*) FROM {}", quoted(name)), [], |row| byte_length(row, 0))
}
