//! Which tables and columns a database really has. Which layout rules apply follows from them and never from a version number (P1).

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde::Serialize;

mod known;

pub use known::KNOWN_TABLES;

/// A table of the database, with its columns in stored order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Column names, as stored.
    pub columns: Vec<String>,
    /// Whether the table has a rowid (false for `WITHOUT ROWID` and virtual tables).
    pub has_rowid: bool,
}

/// The tables, triggers and views of one database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Schema {
    tables: BTreeMap<String, Table>,
    triggers: Vec<String>,
    views: Vec<String>,
}

/// Which storage layouts a file holds; both may be present in one file (fact B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Layouts {
    /// 1.x: `session`, `message`, `part`.
    pub v1: bool,
    /// 2.x: `session_message` with `session_v2`, or (fact A11) with `session`.
    pub v2: bool,
}

impl Schema {
    /// Reads the schema of the main database of `connection`.
    ///
    /// # Errors
    /// Any error of SQLite while it reads `sqlite_schema`.
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut schema = Self { tables: BTreeMap::new(), triggers: Vec::new(), views: Vec::new() };
        let mut statement = connection.prepare(
            "SELECT m.name, c.name, l.wr = 0 AND l.type = 'table' FROM sqlite_schema m \
             JOIN pragma_table_list(m.name) l ON l.schema = 'main' \
             JOIN pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, c.cid",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let table = schema
                .tables
                .entry(row.get(0)?)
                .or_insert(Table { columns: Vec::new(), has_rowid: row.get(2)? });
            table.columns.push(row.get(1)?);
        }
        let mut statement = connection.prepare(
            "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let list =
                if row.get::<_, String>(0)? == "view" { &mut schema.views } else { &mut schema.triggers };
            list.push(row.get(1)?);
        }
        Ok(schema)
    }

    /// The tables, sorted by name.
    pub fn tables(&self) -> &BTreeMap<String, Table> {
        &self.tables
    }

    /// Whether `table` exists and has `column`.
    pub fn has(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|found| found.columns.iter().any(|name| name == column))
    }

    /// Whether `table` exists.
    pub fn has_table(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Names of triggers, sorted. OpenCode has none (fact A1); a fence refuses a database that has one (P8).
    pub fn triggers(&self) -> &[String] {
        &self.triggers
    }

    /// Which layouts the file holds.
    pub fn layouts(&self) -> Layouts {
        let v1 = ["session", "message", "part"].iter().all(|table| self.has_table(table));
        let v2 =
            self.has_table("session_message") && (self.has_table("session_v2") || self.has_table("session"));
        Layouts { v1, v2 }
    }

    /// Columns without which no rule applies, as `table.column`, of the tables that the layouts found rest on. Empty where all are there.
    pub fn missing_columns(&self) -> Vec<String> {
        const NEEDED: [(&str, &[&str]); 5] = [
            ("session", &["id"]),
            ("message", &["id", "session_id", "data"]),
            ("part", &["id", "message_id", "session_id", "data"]),
            ("session_v2", &["id"]),
            ("session_message", &["id", "session_id", "type", "data"]),
        ];
        let present = NEEDED.iter().filter(|(table, _)| self.has_table(table));
        let columns =
            present.flat_map(|&(table, columns)| columns.iter().map(move |&column| (table, column)));
        columns
            .filter(|(table, column)| !self.has(table, column))
            .map(|(table, column)| format!("{table}.{column}"))
            .collect()
    }

    /// Names of views, sorted. OpenCode has none (fact A1).
    pub fn views(&self) -> &[String] {
        &self.views
    }

    /// Tables that OpenCode does not have in any layout known here, sorted. They are kept and named, never dropped.
    pub fn unknown_tables(&self) -> Vec<&str> {
        self.tables.keys().map(String::as_str).filter(|name| known::columns(name).is_none()).collect()
    }

    /// Columns beyond those known, as (table, column), sorted by table. They are kept, whatever they hold.
    pub fn unknown_columns(&self) -> Vec<(&str, &str)> {
        let mut unknown = Vec::new();
        for (name, table) in &self.tables {
            let Some(known) = known::columns(name) else { continue };
            let extra = table.columns.iter().filter(|column| !known.contains(&column.as_str()));
            unknown.extend(extra.map(|column| (name.as_str(), column.as_str())));
        }
        unknown
    }
}
