//! Which rows a table had, as its indexes tell.

use roaring::RoaringTreemap;
use rusqlite::Connection;

use crate::plan::RowIds;

/// The rowids that the indexes of a table name.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Every rowid named by some index, as the bits of the signed value.
    pub(super) rows: RowIds,
    /// Whether one index could be read to its end, so that `rows` is all.
    pub(super) is_complete: bool,
}

/// A unique index over one column, which proves what row a value belongs to.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    pub(super) index: String,
    pub(super) column: String,
}

impl Known {
    pub(super) fn read(connection: &Connection, table: &str) -> Self {
        let mut known = Self::default();
        for index in indexes(connection, table) {
            let sql = format!("SELECT rowid FROM {} INDEXED BY {}", quoted(table), quoted(&index));
            known.is_complete |= add(connection, &sql, &mut known.rows).is_ok();
            if known.is_complete {
                break;
            }
        }
        known
    }
}

fn add(connection: &Connection, sql: &str, rows: &mut RoaringTreemap) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        rows.insert(row.get::<_, i64>(0)?.cast_unsigned());
    }
    Ok(())
}

/// Indexes over all rows of a table, automatic ones included.
fn indexes(connection: &Connection, table: &str) -> Vec<String> {
    let sql = "SELECT name FROM pragma_index_list(?1) WHERE partial = 0";
    let read = || -> rusqlite::Result<Vec<String>> {
        connection.prepare(sql)?.query_map([table], |row| row.get(0))?.collect()
    };
    read().unwrap_or_default()
}

/// A unique index over one column of `table`.
pub(super) fn proof(connection: &Connection, table: &str) -> Option<Proof> {
    let sql = "SELECT l.name, (SELECT name FROM pragma_index_info(l.name)) FROM pragma_index_list(?1) l \
               WHERE l.\"unique\" = 1 AND l.partial = 0 AND (SELECT count(*) FROM pragma_index_info(l.name)) = 1";
    connection.query_row(sql, [table], |row| Ok(Proof { index: row.get(0)?, column: row.get(1)? })).ok()
}

/// A name as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
