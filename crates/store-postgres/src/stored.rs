//! Rows as they are stored, column by column.

use headwater_model::WallTime;
use headwater_store::transfer::{Holds, Owner, StoredRow, Table, Value};
use headwater_store::{BadMutation, RawRows, RefusedRow};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use crate::inspect::columns;
use crate::transaction::InTransaction;

/// Which columns of the format the database has in `table`.
pub(crate) async fn has(client: &Client, table: Table) -> Result<Vec<bool>, Error> {
    let present = columns(client, table.name()).await?;
    Ok(table.columns().iter().map(|(name, _)| present.iter().any(|present| present == name)).collect())
}

/// A statement that reads rows of `table`: every column of the format, NULL where the database has no such column.
pub(crate) fn select(table: Table, owner: Owner<'_>, has: &[bool]) -> String {
    let list = table.columns().iter().zip(has).map(|((name, holds), has)| match holds {
        Holds::Integer if *has => format!("{name}::bigint"),
        Holds::Text if *has => format!("{name}::text"),
        Holds::Time if *has => format!("to_char({name}, 'YYYY-MM-DD HH24:MI:SS.US')"),
        Holds::Integer => "NULL::bigint".to_owned(),
        Holds::Text | Holds::Time => "NULL::text".to_owned(),
    });
    let (name, key) = (table.name(), table.key());
    let condition = match owner {
        Owner::Everything => String::new(),
        Owner::Key(value) => format!(" WHERE {key} = {}", quoted(value)),
        Owner::Session(value) => format!(" WHERE task_session_id = {}", quoted(value)),
    };
    let order = match table {
        Table::Turns => "started_at NULLS FIRST, id COLLATE \"C\"".to_owned(),
        Table::Messages => "created_at NULLS FIRST, id COLLATE \"C\"".to_owned(),
        Table::Workspaces | Table::Tasks | Table::Sessions | Table::PromptSeq => {
            format!("{key} COLLATE \"C\"")
        }
    };
    let list = list.collect::<Vec<_>>().join(", ");
    format!("SELECT {list} FROM {name}{condition} ORDER BY {order}")
}

/// A text as a literal: a cursor takes no parameters. The `E` form does not depend on `standard_conforming_strings`.
fn quoted(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Reads a row of that statement.
pub(crate) fn row(row: &Row, table: Table, has: &[bool]) -> Result<StoredRow, Error> {
    let mut values = Vec::with_capacity(has.len());
    for (place, ((_, holds), has)) in table.columns().iter().zip(has).enumerate() {
        values.push(match holds {
            _ if !has => Value::Absent,
            Holds::Integer => row.try_get::<_, Option<i64>>(place)?.map_or(Value::Null, Value::Integer),
            Holds::Text => row.try_get::<_, Option<String>>(place)?.map_or(Value::Null, Value::Text),
            Holds::Time => row.try_get::<_, Option<String>>(place)?.map_or(Value::Null, |text| {
                let time = WallTime::parse_stored(&text);
                Value::Text(time.map_or(text, WallTime::stored_text))
            }),
        });
    }
    Ok(StoredRow { table, values })
}

/// A value as a parameter of its column's type.
enum Bound {
    Text(Option<String>),
    Integer(Option<i64>),
}

impl Bound {
    fn new(value: &Value, holds: Holds) -> Self {
        match (holds, value) {
            (Holds::Integer, Value::Integer(number)) => Self::Integer(Some(*number)),
            (Holds::Integer, _) => Self::Integer(None),
            (Holds::Time, Value::Text(text)) => {
                let time = WallTime::parse_stored(text).ok();
                Self::Text(time.map(|time| time.order_time().as_str().to_owned()))
            }
            (Holds::Text, Value::Text(text)) => Self::Text(Some(text.clone())),
            (Holds::Text | Holds::Time, _) => Self::Text(None),
        }
    }

    fn parameter(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Text(text) => text,
            Self::Integer(number) => number,
        }
    }
}

impl InTransaction<'_> {
    /// As [`has`], asked once for each table of a transaction.
    async fn has(&mut self, table: Table) -> Result<Vec<bool>, Error> {
        if let Some(has) = self.1.get(table.name()) {
            return Ok(has.clone());
        }
        let has = has(self.0.client(), table).await?;
        self.1.insert(table.name(), has.clone());
        Ok(has)
    }
}

impl RawRows for InTransaction<'_> {
    fn kept(row: &StoredRow) -> Result<StoredRow, BadMutation> {
        row.typed()
    }

    async fn stored(&mut self, table: Table, key: &str) -> Result<Option<StoredRow>, Error> {
        let has = self.has(table).await?;
        let found = self.0.query_opt(&select(table, Owner::Key(key), &has), &[]).await?;
        found.as_ref().map(|found| row(found, table, &has)).transpose()
    }

    async fn insert(&mut self, row: &StoredRow) -> Result<Result<(), RefusedRow>, Error> {
        if row.table == Table::Tasks {
            ensure_workspace(self, row).await?;
        }
        let has = self.has(row.table).await?;
        let (mut names, mut marks, mut bound) = (Vec::new(), Vec::new(), Vec::new());
        for (((name, holds), value), has) in row.table.columns().iter().zip(&row.values).zip(has) {
            if matches!(value, Value::Absent) || !has {
                continue;
            }
            let kind = match holds {
                Holds::Text => "text",
                Holds::Integer => "bigint",
                Holds::Time => "text::timestamp",
            };
            names.push(*name);
            marks.push(format!("${}::{kind}", names.len()));
            bound.push(Bound::new(value, *holds));
        }
        let sql =
            format!("INSERT INTO {} ({}) VALUES ({})", row.table.name(), names.join(", "), marks.join(", "));
        let parameters: Vec<_> = bound.iter().map(Bound::parameter).collect();
        match self.0.execute(&self.0.prepare_cached(&sql).await?, &parameters).await {
            Ok(_) => Ok(Ok(())),
            Err(error) if is_of_row(&error) => Ok(Err(RefusedRow)),
            Err(error) => Err(error),
        }
    }

    async fn raise_prompt_seq(&mut self, session: &str, last: i64) -> Result<(), Error> {
        let sql = "UPDATE task_session_prompt_seq SET last_seq = $2::bigint WHERE task_session_id = $1";
        self.0.execute(sql, &[&session, &last]).await.map(drop)
    }
}

/// Whether a constraint or the type of a column refused the row (classes 22 and 23). Not where another transaction was faster with the same
/// key: trying again finds its row.
fn is_of_row(error: &Error) -> bool {
    error.code().is_some_and(|state| {
        *state != SqlState::UNIQUE_VIOLATION
            && (state.code().starts_with("22") || state.code().starts_with("23"))
    })
}

/// Hosts name workspaces that no row speaks of; where a foreign key wants one, there is one without a name.
async fn ensure_workspace(rows: &InTransaction<'_>, task: &StoredRow) -> Result<(), Error> {
    let refers =
        "SELECT EXISTS (SELECT 1 FROM pg_constraint WHERE contype = 'f' AND conrelid = to_regclass('tasks')
                      AND confrelid = to_regclass('workspaces'))";
    let sql = "INSERT INTO workspaces (id, name, created_at, updated_at)
               SELECT $1::text, '', $2::text::timestamp, $2::text::timestamp ON CONFLICT (id) DO NOTHING";
    let Some(workspace) = task.text("workspace_id") else { return Ok(()) };
    if rows.0.query_one(refers, &[]).await?.try_get(0)? {
        let created = Bound::new(task.value("created_at"), Holds::Time);
        rows.0.execute(sql, &[&workspace, created.parameter()]).await?;
    }
    Ok(())
}
