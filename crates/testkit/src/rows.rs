//! What a database holds, row by row, so that a test can say which rows changed and that no other did.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;

use crate::fixture::Fixture;

/// Every row of a database: (table, key) to the values of its columns, as (column, SQL literal).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<(String, String), Vec<(String, String)>>);

impl Rows {
    /// Reads all tables of a database, as one snapshot. The write-ahead log is read and left as it is.
    pub fn read(path: &Path) -> Self {
        let db = Fixture::reopen(path);
        db.connection()
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .expect("keep the log on close");
        db.connection().busy_timeout(std::time::Duration::from_secs(30)).expect("wait for locks");
        db.sql("BEGIN");
        let mut rows = Self::default();
        let names =
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'";
        let mut tables = db.connection().prepare(names).expect("list the tables");
        let tables: Vec<String> =
            tables.query_map([], |row| row.get(0)).and_then(Iterator::collect).expect("list the tables");
        for table in tables {
            rows.read_table(&db, &table);
        }
        db.sql("COMMIT");
        rows
    }

    fn read_table(&mut self, db: &Fixture, table: &str) {
        let key = "SELECT coalesce(group_concat('quote(\"' || name || '\")', ' || '':'' || '), 'rowid') \
                   FROM (SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk)";
        let key: String =
            db.connection().query_row(key, [table], |row| row.get(0)).expect("find a table's key");
        let mut statement = db
            .connection()
            .prepare(&format!("SELECT {key} AS \"key of the row\", * FROM \"{table}\""))
            .expect("read a table");
        let columns: Vec<String> =
            statement.column_names().iter().skip(1).map(|&name| name.to_owned()).collect();
        let mut found = statement.query([]).expect("read a table");
        while let Some(row) = found.next().expect("read a row") {
            let key: String = match row.get_ref(0).expect("read a key") {
                ValueRef::Integer(rowid) => rowid.to_string(),
                ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                key @ (ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_)) => literal(key),
            };
            let value = |i: usize| literal(row.get_ref(i + 1).expect("read a value"));
            let values = columns.iter().enumerate().map(|(i, name)| (name.clone(), value(i))).collect();
            self.0.insert((table.to_owned(), key), values);
        }
    }

    /// The rows of one session: its own row, and those that name it in `session_id` or `aggregate_id`.
    #[must_use]
    pub fn of_session(&self, session: &str) -> Self {
        let names = |values: &[(String, String)], column: &str| {
            let wanted = format!("'{session}'");
            values.iter().any(|(name, value)| name == column && *value == wanted)
        };
        self.only(|table, values| {
            let column = match table {
                "session" | "session_v2" => "id",
                "event" | "event_sequence" => "aggregate_id",
                _ => "session_id",
            };
            names(values, column)
        })
    }

    /// All rows but those of one session.
    #[must_use]
    pub fn without_session(&self, session: &str) -> Self {
        let own = self.of_session(session);
        Self(
            self.0
                .iter()
                .filter(|(key, _)| !own.0.contains_key(*key))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
        )
    }

    /// The rows of these tables.
    #[must_use]
    pub fn of_tables(&self, tables: &[&str]) -> Self {
        self.only(|table, _| tables.contains(&table))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Which rows another snapshot has lost, gained or changed: lines such as `part 'prt_1': changed data`, sorted.
    pub fn changes(&self, after: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((table, key), before) in &self.0 {
            match after.0.get(&(table.clone(), key.clone())) {
                None => lines.push(format!("{table} {key}: gone")),
                Some(now) if now == before => {}
                Some(now) => {
                    let differs =
                        before.iter().filter(|value| !now.contains(value)).map(|(name, _)| name.as_str());
                    lines.push(format!("{table} {key}: changed {}", differs.collect::<Vec<_>>().join(", ")));
                }
            }
        }
        let added = after.0.keys().filter(|key| !self.0.contains_key(*key));
        lines.extend(added.map(|(table, key)| format!("{table} {key}: new")));
        lines.sort();
        lines
    }

    fn only(&self, keep: impl Fn(&str, &[(String, String)]) -> bool) -> Self {
        let kept = self.0.iter().filter(|((table, _), values)| keep(table, values));
        Self(kept.map(|(key, values)| (key.clone(), values.clone())).collect())
    }
}

/// The value as it would stand in a statement; exact for every byte.
fn literal(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => format!("{number:?}"),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => format!("'{text}'"),
            Err(_) => format!("text {bytes:02x?}"),
        },
        ValueRef::Blob(bytes) => format!("blob {bytes:02x?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    #[test]
    fn changes_name_the_rows_that_differ_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let case = cases::changed_after_preview(folder.path());
        let before = Rows::read(&case.path);
        assert_eq!(before.changes(&Rows::read(&case.path)), Vec::<String>::new());
        case.change();
        let after = Rows::read(&case.path);
        assert_eq!(
            before.changes(&after),
            ["part 'prt_1': changed time_updated, data", "part 'prt_2': gone", "part 'prt_new': new"]
        );
        assert_eq!(before.without_session("ses_a"), after.without_session("ses_a"));
        assert_eq!(after.of_session("ses_busy").of_tables(&["part", "session"]).count(), 3);
    }
}
