//! Every row of a session as a line of JSON.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use roaring::RoaringTreemap;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB, OptionalExtension};

use super::subjects::{SESSION_TABLES, Subject, quoted, session_column};
use super::{Written, value};
use crate::ReadDatabase;
use crate::observer::Observer;
use crate::reading::ReadError;
use crate::schema::Table;

/// A value up to this size is read whole.
const WHOLE_BYTES_MAX: i64 = 1 << 20;

/// Projects that were written; each is written once.
#[derive(Debug, Default)]
pub(super) struct Projects(BTreeSet<String>);

/// Writes the project of a session, its own rows, then its rows in every other table, by name.
pub(super) fn write(
    database: &ReadDatabase,
    subject: &Subject,
    projects: &mut Projects,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<Written, ReadError> {
    let mut out = BufWriter::with_capacity(64 * 1024, out);
    let mut lines = Lines { database, observer, out: &mut out, written: 0 };
    let schema = database.schema();
    for table in SESSION_TABLES {
        if schema.has(table, "project_id") {
            let sql = format!("SELECT project_id FROM {table} WHERE id = ?1 AND typeof(project_id) = 'text'");
            let project: Option<String> =
                database.connection().query_row(&sql, [&subject.id], |row| row.get(0)).optional()?;
            if let Some(project) = project
                && schema.has("project", "id")
                && projects.0.insert(project.clone())
            {
                lines.of("project", "id", &project)?;
            }
        }
    }
    let others = schema.tables().keys().map(String::as_str).filter(|table| !SESSION_TABLES.contains(table));
    for table in SESSION_TABLES.into_iter().chain(others) {
        if let Some(column) = session_column(schema, table) {
            lines.of(table, column, &subject.id)?;
        }
    }
    let entries = lines.written;
    out.flush().map_err(ReadError::Output)?;
    Ok(Written { entries, unreadable: 0 })
}

struct Lines<'a, W: Write> {
    database: &'a ReadDatabase,
    observer: &'a dyn Observer,
    out: &'a mut W,
    written: u64,
}

impl<W: Write> Lines<'_, W> {
    /// Writes the rows of `table` whose `column` is `id`.
    fn of(&mut self, name: &str, column: &str, id: &str) -> Result<(), ReadError> {
        let Some(table) = self.database.schema().tables().get(name) else { return Ok(()) };
        let connection = self.database.connection();
        if !table.has_rowid {
            return self.without_rowid(name, table, column, id);
        }
        // Sorting names of rows and not rows keeps payloads out of SQLite's sorter.
        let sql = format!("SELECT rowid FROM {} WHERE {} = ?1", quoted(name), quoted(column));
        let mut rowids = RoaringTreemap::new();
        let mut statement = connection.prepare(&sql)?;
        for rowid in statement.query_map([id], |row| row.get::<_, i64>(0))? {
            // Flipping the sign keeps the order of signed numbers.
            rowids.insert(rowid?.cast_unsigned() ^ (1 << 63));
        }
        let sql = format!("SELECT {} FROM {} WHERE rowid = ?1", columns(table), quoted(name));
        let mut statement = connection.prepare(&sql)?;
        for flipped in rowids {
            let rowid = (flipped ^ (1 << 63)).cast_signed();
            self.check_cancelled()?;
            let mut rows = statement.query([rowid])?;
            if let Some(row) = rows.next()? {
                self.line(connection, name, table, row, Some(rowid))?;
            }
        }
        Ok(())
    }

    /// A table without rowids has no handles for chunks; such a table is not one of OpenCode's, and its rows are read whole.
    fn without_rowid(&mut self, name: &str, table: &Table, column: &str, id: &str) -> Result<(), ReadError> {
        let connection = self.database.connection();
        let sql = format!("SELECT {} FROM {} WHERE {} = ?1", columns(table), quoted(name), quoted(column));
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            self.check_cancelled()?;
            self.line(connection, name, table, row, None)?;
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<(), ReadError> {
        if self.observer.is_cancelled() { Err(ReadError::Cancelled) } else { Ok(()) }
    }

    fn line(
        &mut self,
        connection: &Connection,
        name: &str,
        table: &Table,
        row: &rusqlite::Row<'_>,
        rowid: Option<i64>,
    ) -> Result<(), ReadError> {
        self.put(b"{\"table\":")?;
        value::string(name, self.out).map_err(ReadError::Output)?;
        self.put(b",\"row\":{")?;
        for (index, column) in table.columns.iter().enumerate() {
            if index > 0 {
                self.put(b",")?;
            }
            value::string(column, self.out).map_err(ReadError::Output)?;
            self.put(b":")?;
            let large: Option<bool> = row.get(index * 2 + 1)?;
            match (large, rowid) {
                (Some(is_text), Some(rowid)) => {
                    let blob = connection.blob_open(MAIN_DB, name, column.as_str(), rowid, true)?;
                    value::write_large(blob, is_text, self.out).map_err(output_or_sqlite)?;
                }
                (Some(_), None) => {
                    let what = "a value beyond one mebibyte in a table without rowids";
                    return Err(ReadError::Output(io::Error::other(what)));
                }
                (None, _) => {
                    let value: ValueRef<'_> = row.get_ref(index * 2)?;
                    value::write(value, self.out).map_err(ReadError::Output)?;
                }
            }
        }
        self.put(b"}}\n")?;
        self.written += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        self.out.write_all(bytes).map_err(ReadError::Output)
    }
}

/// Per column two values: the value unless it is large, and for a large one whether it is text.
fn columns(table: &Table) -> String {
    let column = |name: &String| {
        let name = quoted(name);
        let is_large =
            format!("typeof({name}) IN ('text', 'blob') AND octet_length({name}) > {WHOLE_BYTES_MAX}");
        format!(
            "CASE WHEN NOT ({is_large}) THEN {name} END, CASE WHEN {is_large} THEN typeof({name}) = 'text' END"
        )
    };
    table.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Reading a value fails with an error of SQLite inside one of input; anything else is the output's.
fn output_or_sqlite(error: io::Error) -> ReadError {
    match error.downcast::<rusqlite::Error>() {
        Ok(error) => error.into(),
        Err(error) => ReadError::Output(error),
    }
}
