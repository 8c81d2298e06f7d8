//! Single rows inside a transaction.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use headwater_model::conversation::{MessageRecord, Place, SessionRecord, TurnRecord};
use headwater_model::{Revision, SessionId, WallTime};
use headwater_store::Rows;
use rusqlite::{Connection, Params, Result, Row, ToSql, params};

use crate::order::order_time;
use crate::{pages, rows};

/// A statement whose text is put together once.
macro_rules! sql {
    ($($part:tt)*) => {{
        static SQL: LazyLock<String> = LazyLock::new(|| format!($($part)*));
        SQL.as_str()
    }};
}

/// The rows in the transaction of a connection. Nothing waits: every future is ready at once.
pub(crate) struct InTransaction<'a>(
    pub(crate) &'a Connection,
    /// By the name of a table, which columns of the format it has; as far as that was asked.
    pub(crate) BTreeMap<&'static str, Vec<bool>>,
);

impl<'a> InTransaction<'a> {
    pub(crate) const fn new(db: &'a Connection) -> Self {
        Self(db, BTreeMap::new())
    }

    fn one<T>(&self, sql: &str, values: impl Params, read: impl FnMut(&Row<'_>) -> Result<T>) -> Result<T> {
        self.0.prepare_cached(sql)?.query_row(values, read)
    }

    fn find<T>(&self, sql: &str, id: &str, read: impl FnMut(&Row<'_>) -> Result<T>) -> Result<Option<T>> {
        self.0.prepare_cached(sql)?.query_map([id], read)?.next().transpose()
    }

    fn execute(&self, sql: &str, values: impl Params) -> Result<usize> {
        self.0.prepare_cached(sql)?.execute(values)
    }
}

impl Rows for InTransaction<'_> {
    type Error = rusqlite::Error;

    async fn revision(&mut self, session: &SessionId) -> Result<Option<Revision>> {
        pages::revision(self.0, session.as_str())
    }

    async fn session(&mut self, id: &str) -> Result<Option<SessionRecord>> {
        pages::session(self.0, id)
    }

    async fn has_task(&mut self, id: &str) -> Result<bool> {
        self.one("SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1)", [id], |row| row.get(0))
    }

    async fn insert_session(&mut self, new: &SessionRecord) -> Result<SessionRecord> {
        let sql = sql!(
            "INSERT INTO task_sessions (id, task_id, name, state, started_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             RETURNING {}",
            rows::SESSION_COLUMNS
        );
        let [started_at, updated_at] = [new.started_at, new.updated_at].map(WallTime::stored_text);
        self.one(
            sql,
            params![new.id, new.task_id, new.name, new.state, started_at, updated_at],
            rows::session,
        )
    }

    async fn delete_session(&mut self, id: &str) -> Result<bool> {
        Ok(self.execute("DELETE FROM task_sessions WHERE id = ?1", [id])? > 0)
    }

    async fn message(&mut self, id: &str) -> Result<Option<MessageRecord>> {
        let sql = sql!("SELECT {} FROM task_session_messages WHERE id = ?1", rows::STORED_MESSAGE_COLUMNS);
        match self.find(sql, id, rows::plain_message)? {
            Some(None) => {}
            found => return Ok(found.flatten()),
        }
        let sql = sql!("SELECT {} FROM task_session_messages WHERE id = ?1", rows::message_columns());
        self.find(sql, id, rows::message)
    }

    async fn message_head(&mut self, id: &str, session: &str) -> Result<Option<(u64, Place)>> {
        let sql = sql!(
            "SELECT octet_length(content), {} FROM task_session_messages WHERE id = ?1 AND task_session_id = ?2",
            rows::place_columns()
        );
        let mut statement = self.0.prepare_cached(sql)?;
        let mut found = statement.query_map([id, session], |row| {
            let length: Option<i64> = row.get(0)?;
            Ok((length.unwrap_or(0).unsigned_abs(), rows::place(row, 1)?))
        })?;
        found.next().transpose()
    }

    async fn insert_message(&mut self, new: &MessageRecord) -> Result<MessageRecord> {
        let sql = sql!(
            "INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, author_id, type, content,
                 requests_input, metadata, created_at, updated_at, prompt_seq)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) RETURNING {}",
            rows::message_columns()
        );
        let values = params![
            new.id,
            new.session_id,
            new.task_id.as_deref().unwrap_or_default(),
            new.turn_id.as_deref().unwrap_or_default(),
            new.author_type,
            new.author_id,
            new.kind,
            new.content,
            new.requests_input,
            new.metadata,
            new.created_at.stored_text(),
            new.updated_at.stored_text(),
            new.prompt_index.unwrap_or(0).cast_signed(),
        ];
        self.one(sql, values, rows::message)
    }

    async fn append(&mut self, id: &str, text: &str, at: WallTime) -> Result<MessageRecord> {
        let sql = "UPDATE task_session_messages SET content = content || ?1, updated_at = ?2 WHERE id = ?3";
        self.execute(sql, (text, at.stored_text(), id))?;
        self.message(id).await?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Names no column that an index has: SQLite writes the entries of each that is named anew, whether it changes or not. What was
    /// written is what is there: nothing comes between a statement and its row but a trigger of another program, and a change that one
    /// makes is a step of the revision that nobody knows of, which makes the receipt a reset (C5).
    async fn update_message(
        &mut self,
        stored: &MessageRecord,
        changed: &MessageRecord,
    ) -> Result<MessageRecord> {
        let mut set = vec!["updated_at = ?2".to_owned()];
        let updated_at = changed.updated_at.stored_text();
        let mut values: Vec<&dyn ToSql> = vec![&changed.id, &updated_at];
        let columns: [(&str, bool, &dyn ToSql); 4] = [
            ("type", stored.kind != changed.kind, &changed.kind),
            ("content", stored.content != changed.content, &changed.content),
            ("requests_input", stored.requests_input != changed.requests_input, &changed.requests_input),
            ("metadata", stored.metadata != changed.metadata, &changed.metadata),
        ];
        for (column, is_changed, value) in columns {
            if is_changed {
                values.push(value);
                set.push(format!("{column} = ?{}", values.len()));
            }
        }
        let sql = format!("UPDATE task_session_messages SET {} WHERE id = ?1", set.join(", "));
        self.execute(&sql, values.as_slice())?;
        Ok(changed.clone())
    }

    async fn move_message(&mut self, changed: &MessageRecord) -> Result<MessageRecord> {
        let sql = "UPDATE task_session_messages SET task_session_id = ?2, task_id = ?3, turn_id = ?4, updated_at = ?5 WHERE id = ?1";
        let values = params![
            changed.id,
            changed.session_id,
            changed.task_id.as_deref().unwrap_or_default(),
            changed.turn_id.as_deref().unwrap_or_default(),
            changed.updated_at.stored_text(),
        ];
        self.execute(sql, values)?;
        Ok(changed.clone())
    }

    async fn delete_message(&mut self, id: &str) -> Result<()> {
        self.execute("DELETE FROM task_session_messages WHERE id = ?1", [id]).map(drop)
    }

    async fn newest_prompt(&mut self, session: &str) -> Result<Option<WallTime>> {
        let sql = sql!(
            "SELECT {time} FROM task_session_messages WHERE task_session_id = ?1 AND author_type = 'user'
             ORDER BY {time} DESC, id DESC LIMIT 1",
            time = order_time("created_at")
        );
        let newest: Option<Option<String>> = self.find(sql, session, |row| row.get(0))?;
        Ok(newest.flatten().and_then(|text| WallTime::parse_stored(&text).ok()))
    }

    async fn next_prompt_seq(&mut self, session: &str) -> Result<u64> {
        let sql = "INSERT INTO task_session_prompt_seq (task_session_id, last_seq)
                   SELECT ?1, 1 + ifnull(max(prompt_seq), 0) FROM task_session_messages
                       WHERE task_session_id = ?1 AND author_type = 'user'
                           AND NOT EXISTS (SELECT 1 FROM task_session_prompt_seq WHERE task_session_id = ?1)
                   ON CONFLICT (task_session_id) DO UPDATE SET last_seq = last_seq + 1
                   RETURNING last_seq";
        self.one(sql, [session], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    }

    async fn turn(&mut self, id: &str) -> Result<Option<TurnRecord>> {
        let sql = sql!("SELECT {} FROM task_session_turns WHERE id = ?1", rows::turn_columns());
        self.find(sql, id, rows::turn)
    }

    async fn insert_turn(&mut self, new: &TurnRecord) -> Result<TurnRecord> {
        let sql = sql!(
            "INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, execution_profile_id, route_generation,
                 metadata, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING {}",
            rows::turn_columns()
        );
        let values = params![
            new.id,
            new.session_id,
            new.task_id.as_deref().unwrap_or_default(),
            new.started_at.stored_text(),
            new.execution_profile_id,
            new.route_generation,
            new.metadata,
            new.created_at.stored_text(),
            new.updated_at.stored_text(),
        ];
        self.one(sql, values, rows::turn)
    }

    async fn update_turn(&mut self, changed: &TurnRecord) -> Result<TurnRecord> {
        let sql = sql!(
            "UPDATE task_session_turns SET completed_at = ?2, execution_profile_id = ?3, route_generation = ?4, metadata = ?5,
                 updated_at = ?6
             WHERE id = ?1 RETURNING {}",
            rows::turn_columns()
        );
        let values = params![
            changed.id,
            changed.completed_at.map(WallTime::stored_text),
            changed.execution_profile_id,
            changed.route_generation,
            changed.metadata,
            changed.updated_at.stored_text(),
        ];
        self.one(sql, values, rows::turn)
    }

    /// Foreign keys take the messages, and a trigger runs for each row.
    async fn delete_turn(&mut self, id: &str, messages: usize) -> Result<u32> {
        self.execute("DELETE FROM task_session_turns WHERE id = ?1", [id])?;
        Ok(u32::try_from(messages).unwrap_or(u32::MAX).saturating_add(1))
    }

    async fn is_named(&mut self, turn: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM task_session_messages WHERE turn_id = ?1)";
        self.one(sql, [turn], |row| row.get(0))
    }

    async fn places_of(&mut self, turn: &str) -> Result<Vec<Place>> {
        let sql = sql!("SELECT {} FROM task_session_messages WHERE turn_id = ?1", rows::place_columns());
        self.0.prepare_cached(sql)?.query_map([turn], |row| rows::place(row, 0))?.collect()
    }

    async fn tools_of(&mut self, turn: &str) -> Result<Vec<MessageRecord>> {
        let sql = sql!(
            "SELECT {} FROM task_session_messages WHERE turn_id = ?1 AND metadata LIKE '%tool_call_id%' ORDER BY id",
            rows::message_columns()
        );
        self.0.prepare_cached(sql)?.query_map([turn], rows::message)?.collect()
    }
}
