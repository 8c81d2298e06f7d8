//! Single rows inside a transaction.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use deadpool_postgres::Transaction;
use headwater_model::conversation::{MessageRecord, Place, SessionRecord, TurnRecord};
use headwater_model::{Revision, SessionId, WallTime};
use headwater_store::Rows;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::rows;

/// A statement whose text is put together once.
macro_rules! sql {
    ($($part:tt)*) => {{
        static SQL: LazyLock<String> = LazyLock::new(|| format!($($part)*));
        SQL.as_str()
    }};
}

/// The rows in a transaction.
pub(crate) struct InTransaction<'a>(
    pub(crate) &'a Transaction<'a>,
    /// By the name of a table, which columns of the format it has; as far as that was asked.
    pub(crate) BTreeMap<&'static str, Vec<bool>>,
);

type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

impl<'a> InTransaction<'a> {
    pub(crate) const fn new(transaction: &'a Transaction<'a>) -> Self {
        Self(transaction, BTreeMap::new())
    }

    async fn one<T>(
        &self,
        sql: &str,
        values: Values<'_>,
        read: fn(&Row) -> Result<T, Error>,
    ) -> Result<T, Error> {
        read(&self.0.query_one(&self.0.prepare_cached(sql).await?, values).await?)
    }

    async fn find<T>(
        &self,
        sql: &str,
        values: Values<'_>,
        read: fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let found = self.0.query_opt(&self.0.prepare_cached(sql).await?, values).await?;
        found.as_ref().map(read).transpose()
    }

    async fn all<T>(
        &self,
        sql: &str,
        values: Values<'_>,
        read: fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.0.query(&self.0.prepare_cached(sql).await?, values).await?.iter().map(read).collect()
    }

    async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Error> {
        self.0.execute(&self.0.prepare_cached(sql).await?, values).await
    }
}

/// A time as the text that a statement casts to the column's type.
fn text(time: WallTime) -> String {
    time.order_time().as_str().to_owned()
}

fn number(row: &Row) -> Result<i64, Error> {
    row.try_get(0)
}

fn flag(row: &Row) -> Result<bool, Error> {
    row.try_get(0)
}

impl Rows for InTransaction<'_> {
    type Error = Error;

    /// Creates the row where there is none, and locks it until the transaction ends.
    async fn revision(&mut self, session: &SessionId) -> Result<Option<Revision>, Error> {
        let id = session.as_str();
        let lock = "SELECT revision FROM conversation_session_revisions WHERE session_id = $1 FOR UPDATE";
        // It is there but for the first time: a request less for all others.
        if let Some(stored) = self.find(lock, &[&id], number).await? {
            return Ok(Some(Revision::new(stored).unwrap_or_default()));
        }
        let create = "INSERT INTO conversation_session_revisions (session_id, revision)
                      SELECT id, 0 FROM task_sessions WHERE id = $1 ON CONFLICT (session_id) DO NOTHING";
        self.execute(create, &[&id]).await?;
        let stored = self.find(lock, &[&id], number).await?;
        Ok(stored.map(|counter| Revision::new(counter).unwrap_or_default()))
    }

    async fn session(&mut self, id: &str) -> Result<Option<SessionRecord>, Error> {
        let sql = sql!("SELECT {} FROM task_sessions WHERE id = $1", rows::session_columns());
        self.find(sql, &[&id], rows::session).await
    }

    async fn has_task(&mut self, id: &str) -> Result<bool, Error> {
        self.one("SELECT EXISTS (SELECT 1 FROM tasks WHERE id = $1)", &[&id], flag).await
    }

    async fn insert_session(&mut self, new: &SessionRecord) -> Result<SessionRecord, Error> {
        let sql = sql!(
            "INSERT INTO task_sessions (id, task_id, name, state, started_at, updated_at)
             VALUES ($1, $2, $3, $4, $5::text::timestamp, $6::text::timestamp) RETURNING {}",
            rows::session_columns()
        );
        let [started_at, updated_at] = [new.started_at, new.updated_at].map(text);
        let values: Values<'_> = &[&new.id, &new.task_id, &new.name, &new.state, &started_at, &updated_at];
        self.one(sql, values, rows::session).await
    }

    async fn delete_session(&mut self, id: &str) -> Result<bool, Error> {
        Ok(self.execute("DELETE FROM task_sessions WHERE id = $1", &[&id]).await? > 0)
    }

    async fn message(&mut self, id: &str) -> Result<Option<MessageRecord>, Error> {
        let sql = sql!("SELECT {} FROM task_session_messages WHERE id = $1", rows::message_columns());
        self.find(sql, &[&id], rows::message).await
    }

    async fn message_head(&mut self, id: &str, session: &str) -> Result<Option<(u64, Place)>, Error> {
        let sql = sql!(
            "SELECT octet_length(content)::bigint, {} FROM task_session_messages WHERE id = $1 AND task_session_id = $2",
            rows::place_columns()
        );
        let head = |row: &Row| Ok((row.try_get::<_, i64>(0)?.unsigned_abs(), rows::place(row, 1)?));
        self.find(sql, &[&id, &session], head).await
    }

    async fn insert_message(&mut self, new: &MessageRecord) -> Result<MessageRecord, Error> {
        let sql = sql!(
            "INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, author_id, type, content,
                 requests_input, metadata, created_at, updated_at, prompt_seq)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::bigint, $10, $11::text::timestamp, $12::text::timestamp, $13::bigint)
             RETURNING {}",
            rows::message_columns()
        );
        let [created_at, updated_at] = [new.created_at, new.updated_at].map(text);
        let prompt_seq = new.prompt_index.unwrap_or(0).cast_signed();
        let values: Values<'_> = &[
            &new.id,
            &new.session_id,
            &new.task_id.as_deref().unwrap_or_default(),
            &new.turn_id.as_deref().unwrap_or_default(),
            &new.author_type,
            &new.author_id,
            &new.kind,
            &new.content,
            &i64::from(new.requests_input),
            &new.metadata,
            &created_at,
            &updated_at,
            &prompt_seq,
        ];
        self.one(sql, values, rows::message).await
    }

    async fn append(&mut self, id: &str, added: &str, at: WallTime) -> Result<MessageRecord, Error> {
        let sql = sql!(
            "UPDATE task_session_messages SET content = content || $1, updated_at = $2::text::timestamp WHERE id = $3 RETURNING {}",
            rows::message_columns()
        );
        self.one(sql, &[&added, &text(at), &id], rows::message).await
    }

    async fn update_message(
        &mut self,
        stored: &MessageRecord,
        changed: &MessageRecord,
    ) -> Result<MessageRecord, Error> {
        let (updated_at, requests_input) = (text(changed.updated_at), i64::from(changed.requests_input));
        let mut set = vec!["updated_at = $2::text::timestamp".to_owned()];
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&changed.id, &updated_at];
        let columns: [(&str, &str, bool, &(dyn ToSql + Sync)); 4] = [
            ("type", "", stored.kind != changed.kind, &changed.kind),
            ("content", "", stored.content != changed.content, &changed.content),
            ("requests_input", "::bigint", stored.requests_input != changed.requests_input, &requests_input),
            ("metadata", "", stored.metadata != changed.metadata, &changed.metadata),
        ];
        for (column, cast, is_changed, value) in columns {
            if is_changed {
                values.push(value);
                set.push(format!("{column} = ${}{cast}", values.len()));
            }
        }
        let sql = format!(
            "UPDATE task_session_messages SET {} WHERE id = $1 RETURNING {}",
            set.join(", "),
            rows::message_columns()
        );
        self.one(&sql, &values, rows::message).await
    }

    async fn move_message(&mut self, changed: &MessageRecord) -> Result<MessageRecord, Error> {
        let sql = sql!(
            "UPDATE task_session_messages SET task_session_id = $2, task_id = $3, turn_id = $4, updated_at = $5::text::timestamp
             WHERE id = $1 RETURNING {}",
            rows::message_columns()
        );
        let values: Values<'_> = &[
            &changed.id,
            &changed.session_id,
            &changed.task_id.as_deref().unwrap_or_default(),
            &changed.turn_id.as_deref().unwrap_or_default(),
            &text(changed.updated_at),
        ];
        self.one(sql, values, rows::message).await
    }

    async fn delete_message(&mut self, id: &str) -> Result<(), Error> {
        self.execute("DELETE FROM task_session_messages WHERE id = $1", &[&id]).await.map(drop)
    }

    async fn newest_prompt(&mut self, session: &str) -> Result<Option<WallTime>, Error> {
        let sql = sql!(
            "SELECT {} FROM task_session_messages WHERE task_session_id = $1 AND author_type = 'user'
             ORDER BY created_at DESC NULLS LAST, id COLLATE \"C\" DESC LIMIT 1",
            rows::place_columns()
        );
        let newest = self.find(sql, &[&session], |row| rows::place(row, 0)).await?;
        Ok(newest
            .and_then(|place| place.order.time)
            .and_then(|time| WallTime::parse_stored(time.as_str()).ok()))
    }

    async fn next_prompt_seq(&mut self, session: &str) -> Result<u64, Error> {
        let sql = "INSERT INTO task_session_prompt_seq AS stored (task_session_id, last_seq)
                   SELECT $1::text, 1 + coalesce(max(prompt_seq), 0) FROM task_session_messages
                       WHERE task_session_id = $1::text AND author_type = 'user'
                           AND NOT EXISTS (SELECT 1 FROM task_session_prompt_seq WHERE task_session_id = $1::text)
                   ON CONFLICT (task_session_id) DO UPDATE SET last_seq = stored.last_seq + 1
                   RETURNING last_seq::bigint";
        self.one(sql, &[&session], number).await.map(i64::unsigned_abs)
    }

    async fn turn(&mut self, id: &str) -> Result<Option<TurnRecord>, Error> {
        let sql = sql!("SELECT {} FROM task_session_turns WHERE id = $1", rows::turn_columns());
        self.find(sql, &[&id], rows::turn).await
    }

    async fn insert_turn(&mut self, new: &TurnRecord) -> Result<TurnRecord, Error> {
        let sql = sql!(
            "INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, execution_profile_id, route_generation,
                 metadata, created_at, updated_at)
             VALUES ($1, $2, $3, $4::text::timestamp, $5, $6::bigint, $7, $8::text::timestamp, $9::text::timestamp) RETURNING {}",
            rows::turn_columns()
        );
        let [started_at, created_at, updated_at] = [new.started_at, new.created_at, new.updated_at].map(text);
        let values: Values<'_> = &[
            &new.id,
            &new.session_id,
            &new.task_id.as_deref().unwrap_or_default(),
            &started_at,
            &new.execution_profile_id,
            &new.route_generation,
            &new.metadata,
            &created_at,
            &updated_at,
        ];
        self.one(sql, values, rows::turn).await
    }

    async fn update_turn(&mut self, changed: &TurnRecord) -> Result<TurnRecord, Error> {
        let sql = sql!(
            "UPDATE task_session_turns SET completed_at = $2::text::timestamp, execution_profile_id = $3,
                 route_generation = $4::bigint, metadata = $5, updated_at = $6::text::timestamp
             WHERE id = $1 RETURNING {}",
            rows::turn_columns()
        );
        let completed_at = changed.completed_at.map(text);
        let values: Values<'_> = &[
            &changed.id,
            &completed_at,
            &changed.execution_profile_id,
            &changed.route_generation,
            &changed.metadata,
            &text(changed.updated_at),
        ];
        self.one(sql, values, rows::turn).await
    }

    /// The foreign key removes the messages by a statement of its own.
    async fn delete_turn(&mut self, id: &str, messages: usize) -> Result<u32, Error> {
        self.execute("DELETE FROM task_session_turns WHERE id = $1", &[&id]).await?;
        Ok(1 + u32::from(messages > 0))
    }

    async fn is_named(&mut self, turn: &str) -> Result<bool, Error> {
        self.one("SELECT EXISTS (SELECT 1 FROM task_session_messages WHERE turn_id = $1)", &[&turn], flag)
            .await
    }

    async fn places_of(&mut self, turn: &str) -> Result<Vec<Place>, Error> {
        let sql = sql!("SELECT {} FROM task_session_messages WHERE turn_id = $1", rows::place_columns());
        self.all(sql, &[&turn], |row| rows::place(row, 0)).await
    }

    async fn tools_of(&mut self, turn: &str) -> Result<Vec<MessageRecord>, Error> {
        let sql = sql!(
            "SELECT {} FROM task_session_messages WHERE turn_id = $1 AND metadata LIKE '%tool_call_id%' ORDER BY id COLLATE \"C\"",
            rows::message_columns()
        );
        self.all(sql, &[&turn], rows::message).await
    }
}
