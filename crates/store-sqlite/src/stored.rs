//! Rows as they are stored, column by column.

use headwater_store::transfer::{Owner, StoredRow, Table, Value};
use headwater_store::{BadMutation, RawRows, RefusedRow};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Result, Row, ToSql, params_from_iter};

use crate::inspect::columns;
use crate::order::order_time;
use crate::transaction::InTransaction;

/// Which columns of the format the file has in `table`.
pub(crate) fn has(db: &Connection, table: Table) -> Result<Vec<bool>> {
    let present = columns(db, table.name())?;
    Ok(table.columns().iter().map(|(name, _)| present.iter().any(|present| present == name)).collect())
}

/// The statement that reads rows of `table`: every column of the format, NULL where the file has no such column.
pub(crate) fn select(table: Table, owner: Owner<'_>, has: &[bool]) -> String {
    let named = table.columns().iter().zip(has);
    let list: Vec<&str> = named.map(|((name, _), has)| if *has { *name } else { "NULL" }).collect();
    let (name, key) = (table.name(), table.key());
    let condition = match owner {
        Owner::Everything => "?1 IS ?1".to_owned(),
        Owner::Key(_) => format!("{key} = ?1"),
        Owner::Session(_) => "task_session_id = ?1".to_owned(),
    };
    let order = match table {
        Table::Turns => format!("{}, id", order_time("started_at")),
        Table::Messages => format!("{}, id", order_time("created_at")),
        Table::Workspaces | Table::Tasks | Table::Sessions | Table::PromptSeq => key.to_owned(),
    };
    format!("SELECT {} FROM {name} WHERE {condition} ORDER BY {order}", list.join(", "))
}

/// What is bound to the statement of `owner`.
pub(crate) fn bound(owner: Owner<'_>) -> &str {
    match owner {
        Owner::Everything => "",
        Owner::Key(key) | Owner::Session(key) => key,
    }
}

/// Reads a row of that statement.
pub(crate) fn row(row: &Row<'_>, table: Table, has: &[bool]) -> Result<StoredRow> {
    let mut values = Vec::with_capacity(has.len());
    for (place, has) in has.iter().enumerate() {
        values.push(match row.get_ref(place)? {
            _ if !has => Value::Absent,
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Value::Text(text.to_owned()),
                Err(_) => Value::BrokenText(bytes.to_owned()),
            },
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
        });
    }
    Ok(StoredRow { table, values })
}

struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Absent | Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::BrokenText(bytes) => ValueRef::Text(bytes),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl InTransaction<'_> {
    /// As [`has`], asked once for each table: nobody else changes the schema while this transaction writes.
    fn has(&mut self, table: Table) -> Result<Vec<bool>> {
        if let Some(has) = self.1.get(table.name()) {
            return Ok(has.clone());
        }
        let has = has(self.0, table)?;
        self.1.insert(table.name(), has.clone());
        Ok(has)
    }
}

impl RawRows for InTransaction<'_> {
    /// Any column keeps any value.
    fn kept(row: &StoredRow) -> std::result::Result<StoredRow, BadMutation> {
        Ok(row.clone())
    }

    async fn stored(&mut self, table: Table, key: &str) -> Result<Option<StoredRow>> {
        let has = self.has(table)?;
        let mut statement = self.0.prepare_cached(&select(table, Owner::Key(key), &has))?;
        statement.query_map([key], |found| row(found, table, &has))?.next().transpose()
    }

    async fn insert(&mut self, row: &StoredRow) -> Result<std::result::Result<(), RefusedRow>> {
        if row.table == Table::Tasks {
            ensure_workspace(self.0, row)?;
        }
        let has = self.has(row.table)?;
        let known = row.table.columns().iter().zip(&row.values).zip(has);
        let given: Vec<_> = known
            .filter(|((_, value), has)| *has && !matches!(value, Value::Absent))
            .map(|(given, _)| given)
            .collect();
        let names: Vec<&str> = given.iter().map(|((name, _), _)| *name).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", row.table.name(), names.join(", "));
        let values = given.iter().map(|(_, value)| Bound(value));
        match self.0.prepare_cached(&sql)?.execute(params_from_iter(values)) {
            Ok(_) => Ok(Ok(())),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(Err(RefusedRow))
            }
            Err(error) => Err(error),
        }
    }

    async fn raise_prompt_seq(&mut self, session: &str, last: i64) -> Result<()> {
        let sql = "UPDATE task_session_prompt_seq SET last_seq = ?2 WHERE task_session_id = ?1";
        self.0.prepare_cached(sql)?.execute((session, last)).map(drop)
    }
}

/// Hosts name workspaces that no row speaks of; where a foreign key wants one, there is one without a name.
fn ensure_workspace(db: &Connection, task: &StoredRow) -> Result<()> {
    let sql = "INSERT INTO workspaces (id, name, created_at, updated_at)
               SELECT ?1, '', ?2, ?2 WHERE NOT EXISTS (SELECT 1 FROM workspaces WHERE id = ?1)";
    let refers = "SELECT EXISTS (SELECT 1 FROM pragma_foreign_key_list('tasks') WHERE \"table\" = 'workspaces' COLLATE NOCASE)";
    let (workspace, created) = (task.value("workspace_id"), task.value("created_at"));
    if !matches!(workspace, Value::Null | Value::Absent)
        && db.prepare_cached(refers)?.query_row([], |row| row.get::<_, bool>(0))?
    {
        db.prepare_cached(sql)?.execute((Bound(workspace), Bound(created)))?;
    }
    Ok(())
}
