//! Which sessions an export is about.

use std::collections::BTreeSet;

use super::ExportScope;
use crate::ReadDatabase;
use crate::reading::ReadError;
use crate::schema::Schema;

/// One session, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) id: String,
    /// Whether `session` or `session_v2` has a row for it.
    pub(super) has_row: bool,
}

/// The tables whose rows are sessions; the 2.x row of a session in both is the live one (fact B2).
pub(super) const SESSION_TABLES: [&str; 2] = ["session_v2", "session"];

/// The column of a table that names the session its rows belong to.
pub(super) fn session_column(schema: &Schema, table: &str) -> Option<&'static str> {
    if SESSION_TABLES.contains(&table) {
        return schema.has(table, "id").then_some("id");
    }
    ["session_id", "aggregate_id"].into_iter().find(|column| schema.has(table, column))
}

/// The sessions of `scope`, each once, parents before their children.
pub(super) fn of(database: &ReadDatabase, scope: &ExportScope) -> Result<Vec<Subject>, ReadError> {
    let mut found = Found { database, seen: BTreeSet::new(), subjects: Vec::new() };
    match scope {
        ExportScope::Sessions { ids, with_children } => {
            for id in ids {
                found.add(id.as_str(), *with_children)?;
            }
        }
        ExportScope::Recoverable => found.add_without_row()?,
        ExportScope::All => {
            for id in found.ids_of_sessions()? {
                found.add(&id, true)?;
            }
            found.add_without_row()?;
        }
    }
    Ok(found.subjects)
}

struct Found<'a> {
    database: &'a ReadDatabase,
    seen: BTreeSet<String>,
    subjects: Vec<Subject>,
}

impl Found<'_> {
    /// Adds a session and, where asked for, all below it. A loop of parents ends at the first one seen before.
    fn add(&mut self, id: &str, with_children: bool) -> Result<(), ReadError> {
        let mut waiting = vec![id.to_owned()];
        while let Some(id) = waiting.pop() {
            if !self.seen.insert(id.clone()) {
                continue;
            }
            let has_row = self.exists(&SESSION_TABLES, &id)?;
            if !has_row && !self.is_left(&id)? {
                return Err(ReadError::NoSuchSession);
            }
            if with_children {
                let mut children = self.children(&id)?;
                children.reverse();
                waiting.append(&mut children);
            }
            self.subjects.push(Subject { id, has_row });
        }
        Ok(())
    }

    fn exists(&self, tables: &[&str], id: &str) -> Result<bool, ReadError> {
        for table in tables {
            let Some(column) = session_column(self.database.schema(), table) else { continue };
            let sql = format!("SELECT 1 FROM {} WHERE {column} = ?1", quoted(table));
            if self.database.connection().prepare(&sql)?.exists([id])? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_left(&self, id: &str) -> Result<bool, ReadError> {
        let tables: Vec<&str> = self.database.schema().tables().keys().map(String::as_str).collect();
        self.exists(&tables, id)
    }

    fn children(&self, id: &str) -> Result<Vec<String>, ReadError> {
        let mut children = BTreeSet::new();
        for table in SESSION_TABLES {
            if self.database.schema().has(table, "parent_id") {
                let sql = format!("SELECT id FROM {table} WHERE parent_id = ?1");
                let mut statement = self.database.connection().prepare_cached(&sql)?;
                for child in statement.query_map([id], |row| row.get::<_, String>(0))? {
                    children.insert(child?);
                }
            }
        }
        Ok(children.into_iter().collect())
    }

    /// Every session with a row: those without a parent first, so that trees stay together, then those that only a loop or a lost
    /// parent leads to.
    fn ids_of_sessions(&self) -> Result<Vec<String>, ReadError> {
        let (mut roots, mut others) = (BTreeSet::new(), BTreeSet::new());
        for table in SESSION_TABLES {
            if session_column(self.database.schema(), table).is_none() {
                continue;
            }
            let parent =
                if self.database.schema().has(table, "parent_id") { "parent_id IS NULL" } else { "1" };
            let mut statement =
                self.database.connection().prepare(&format!("SELECT id, {parent} FROM {table}"))?;
            for row in
                statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))?
            {
                let (id, is_root) = row?;
                if is_root {
                    roots.insert(id)
                } else {
                    others.insert(id)
                };
            }
        }
        Ok(roots.into_iter().chain(others).collect())
    }

    /// Adds every session that some row belongs to and that has no row of its own.
    fn add_without_row(&mut self) -> Result<(), ReadError> {
        let schema = self.database.schema();
        let mut left = BTreeSet::new();
        for table in schema.tables().keys().filter(|table| !SESSION_TABLES.contains(&table.as_str())) {
            let Some(column) = session_column(schema, table) else { continue };
            let has_row = SESSION_TABLES
                .iter()
                .filter(|sessions| session_column(schema, sessions).is_some())
                .map(|sessions| format!("EXISTS (SELECT 1 FROM {sessions} s WHERE s.id = t.{column})"));
            let has_row = has_row.collect::<Vec<_>>().join(" OR ");
            let sql = format!(
                "SELECT DISTINCT t.{column} FROM {} t WHERE typeof(t.{column}) = 'text' AND NOT ({has_row})",
                quoted(table)
            );
            let mut statement = self.database.connection().prepare(&sql)?;
            for id in statement.query_map([], |row| row.get::<_, String>(0))? {
                left.insert(id?);
            }
        }
        for id in left {
            if self.seen.insert(id.clone()) {
                self.subjects.push(Subject { id, has_row: false });
            }
        }
        Ok(())
    }
}

/// A name as an SQL identifier: tables that are not known here may be called anything.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
