//! What a table looks like in the new file, and the statements that follow from it.

use rusqlite::Connection;

use super::SalvageErrorKind;
use super::known::quoted;

/// Tables whose `data` is JSON (facts A2, B2).
const JSON_TABLES: [&str; 4] = ["event", "message", "part", "session_message"];

/// What a table looks like in the new file.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) has_rowid: bool,
    /// Position of the column that is the rowid by another name.
    pub(super) alias: Option<usize>,
    /// Position of the column that holds JSON.
    pub(super) json: Option<usize>,
}

impl Shape {
    /// Reads it from the new file, where the table has been made.
    pub(super) fn read(new: &Connection, name: &str) -> Result<Self, SalvageErrorKind> {
        let read = || -> rusqlite::Result<Self> {
            let without: bool =
                new.query_row("SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'", [name], |row| {
                    row.get(0)
                })?;
            let mut statement =
                new.prepare("SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid")?;
            let columns: Vec<(String, String, i64)> = statement
                .query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let keys = columns.iter().filter(|(_, _, key)| *key > 0).count();
            let alias = columns.iter().position(|(_, kind, key)| {
                *key > 0 && keys == 1 && kind.eq_ignore_ascii_case("INTEGER") && !without
            });
            let json =
                JSON_TABLES.contains(&name).then(|| columns.iter().position(|(name, _, _)| name == "data"));
            Ok(Self {
                name: name.to_owned(),
                columns: columns.into_iter().map(|(name, _, _)| name).collect(),
                has_rowid: !without,
                alias,
                json: json.flatten(),
            })
        };
        read().map_err(SalvageErrorKind::Write)
    }

    /// `INSERT` for the first `values` columns; the others take their defaults.
    pub(super) fn insert(&self, values: usize) -> String {
        let mut columns: Vec<String> = self.columns.iter().take(values).map(|name| quoted(name)).collect();
        if self.has_rowid && self.alias.is_none() {
            columns.push("rowid".to_owned());
        }
        let marks: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", quoted(&self.name), columns.join(", "), marks.join(", "))
    }

    /// `SELECT` of the rowid (or NULL) and all columns, from the table and not from an index.
    pub(super) fn select(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|name| quoted(name)).collect();
        let rowid = if self.has_rowid { "rowid" } else { "NULL" };
        format!("SELECT {rowid}, {} FROM {} NOT INDEXED", columns.join(", "), quoted(&self.name))
    }
}
