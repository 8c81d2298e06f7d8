//! What a file is made of: every entry of its schema, and per table what copying its rows needs to know.

use rusqlite::Connection;

use crate::rebuild::error::{Doing, RebuildErrorKind};

/// Names under which SQLite gives a table's rowid; a column may hide some of them.
const ROWID_NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// One row of `sqlite_schema` other than an automatic index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) table: String,
    pub(crate) sql: String,
    /// Whether pages hang on it: false for views, triggers and virtual tables.
    pub(crate) has_pages: bool,
}

impl Entry {
    /// Whether SQLite alone may create it (`sqlite_stat1`, `sqlite_sequence`).
    pub(crate) fn is_internal(&self) -> bool {
        self.name.starts_with("sqlite_")
    }

    pub(crate) fn is_table_with_pages(&self) -> bool {
        self.kind == "table" && self.has_pages
    }
}

/// All entries of the schema, in stored order.
pub(crate) fn entries(db: &Connection) -> Result<Vec<Entry>, RebuildErrorKind> {
    let mut statement = db
        .prepare("SELECT type, name, tbl_name, sql, rootpage > 0 FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
        .doing("reading the schema")?;
    let entries = statement.query_map([], |row| {
        Ok(Entry {
            kind: row.get(0)?,
            name: row.get(1)?,
            table: row.get(2)?,
            sql: row.get(3)?,
            has_pages: row.get::<_, Option<bool>>(4)?.unwrap_or(false),
        })
    });
    entries.and_then(Iterator::collect).doing("reading the schema")
}

/// A table with rows of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    pub(crate) name: String,
    /// Stored columns, without generated ones.
    pub(crate) columns: Vec<String>,
    /// Declared types of `columns`.
    pub(crate) types: Vec<String>,
    /// How to say the rowid; none for a table without one, or one whose columns hide every name of it.
    pub(crate) rowid: Option<&'static str>,
    /// Which column is the rowid under another name (`INTEGER PRIMARY KEY`).
    pub(crate) alias: Option<usize>,
    /// Columns of the primary key of a table without rowid, in key order.
    pub(crate) key: Vec<String>,
    /// Whether `INSERT INTO t SELECT * FROM t` moves whole records with their rowids, without decoding them.
    pub(crate) moves_records: bool,
    /// Whether the table computes columns; its stored records hold more than `columns` then.
    pub(crate) has_generated: bool,
}

impl TableShape {
    /// Reads the shape of `table`.
    pub(crate) fn read(db: &Connection, table: &str) -> Result<Self, RebuildErrorKind> {
        Self::query(db, table).doing("reading the shape of a table")
    }

    fn query(db: &Connection, table: &str) -> rusqlite::Result<Self> {
        let mut shape = Self {
            name: table.to_owned(),
            columns: Vec::new(),
            types: Vec::new(),
            rowid: None,
            alias: None,
            key: Vec::new(),
            moves_records: false,
            has_generated: false,
        };
        let mut keys: Vec<(i64, usize)> = Vec::new();
        let mut all_names = Vec::new();
        let mut statement =
            db.prepare("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid")?;
        let mut rows = statement.query([table])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            all_names.push(name.to_ascii_lowercase());
            if row.get::<_, i64>(3)? != 0 {
                shape.has_generated = true;
                continue;
            }
            let position: i64 = row.get(2)?;
            if position > 0 {
                keys.push((position, shape.columns.len()));
            }
            shape.columns.push(name);
            shape.types.push(row.get(1)?);
        }
        let without_rowid: bool = db.query_row(
            "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1",
            [table],
            |row| row.get(0),
        )?;
        let (indexes, key_indexes): (i64, i64) = db.query_row(
            "SELECT count(*) FILTER (WHERE origin <> 'c'), count(*) FILTER (WHERE origin = 'pk') FROM pragma_index_list(?1)",
            [table],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        keys.sort_unstable();
        if without_rowid {
            shape.key = keys.iter().map(|&(_, column)| shape.columns[column].clone()).collect();
            shape.moves_records = !shape.has_generated;
        } else {
            shape.rowid = ROWID_NAMES.into_iter().find(|name| !all_names.iter().any(|column| column == name));
            shape.alias = match keys[..] {
                [(_, column)] if key_indexes == 0 => Some(column),
                _ => None,
            };
            // SQLite numbers rows anew where no index and no key would notice (sqlite3: xferOptimization).
            shape.moves_records = !shape.has_generated && (shape.alias.is_some() || indexes > 0);
        }
        Ok(shape)
    }

    /// The name of the table, quoted.
    pub(crate) fn quoted(&self) -> String {
        quoted(&self.name)
    }

    /// How to order and name rows: the rowid, or nothing.
    pub(crate) fn rowid_expression(&self) -> Option<String> {
        self.alias.map(|column| quoted(&self.columns[column])).or_else(|| self.rowid.map(str::to_owned))
    }

    /// Terms that order the rows as they are stored.
    pub(crate) fn order(&self) -> String {
        self.rowid_expression()
            .unwrap_or_else(|| self.key.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
    }

    /// The statement that inserts one row with its rowid; parameters are the rowid where the table has one, then `columns`.
    pub(crate) fn insert_sql(&self) -> String {
        let mut names: Vec<String> = self.columns.iter().map(|name| quoted(name)).collect();
        if let (Some(rowid), None) = (self.rowid, self.alias) {
            names.insert(0, rowid.to_owned());
        }
        let marks = vec!["?"; names.len()].join(",");
        format!("INSERT INTO {} ({}) VALUES ({marks})", self.quoted(), names.join(","))
    }

    /// Whether [`TableShape::insert_sql`] has the rowid as its first parameter.
    pub(crate) fn inserts_rowid(&self) -> bool {
        self.rowid.is_some() && self.alias.is_none()
    }
}

/// `name` as an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
