//! Small databases for unit tests, in memory: the columns that decisions read, and no others.

use headwater_model::DAY_MS;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::schema::Schema;

/// The clock of every sample.
pub(crate) const NOW: i64 = 1_790_000_000_000;

const COMMON: &str = "
CREATE TABLE event_sequence (aggregate_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, owner_id TEXT);
CREATE TABLE event (id TEXT PRIMARY KEY, aggregate_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX event_aggregate_type_seq_idx ON event (aggregate_id, type, seq);";

const V1: &str = "
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, title TEXT NOT NULL, directory TEXT, revert TEXT,
  time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_compacting INTEGER, time_archived INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL,
  data TEXT);
CREATE INDEX message_session_idx ON message (session_id, time_created, id);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
  time_updated INTEGER NOT NULL, data TEXT);
CREATE INDEX part_message_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE TABLE todo (session_id TEXT NOT NULL, content TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (session_id, position));";

const V2: &str = "
CREATE TABLE session_v2 (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, title TEXT, revert TEXT,
  time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_idle INTEGER, time_compacting INTEGER, time_archived INTEGER,
  time_suspended INTEGER);
CREATE TABLE session_inbox (id TEXT PRIMARY KEY, session_id TEXT NOT NULL);";

const SESSION_MESSAGE: &str = "
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL,
  time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);";

/// A database under construction.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) db: Connection,
}

impl Sample {
    fn with(tables: &[&str]) -> Self {
        let db = Connection::open_in_memory().unwrap();
        for sql in tables {
            db.execute_batch(sql).unwrap();
        }
        Self { db }
    }

    /// 1.x tables only.
    pub(crate) fn v1() -> Self {
        Self::with(&[COMMON, V1])
    }

    /// 2.x tables only.
    pub(crate) fn v2() -> Self {
        Self::with(&[COMMON, V2, SESSION_MESSAGE])
    }

    /// Both layouts in one file.
    pub(crate) fn both() -> Self {
        Self::with(&[COMMON, V1, V2, SESSION_MESSAGE])
    }

    /// 1.18: `session_message` beside the 1.x tables (fact A11).
    pub(crate) fn v1_with_session_message() -> Self {
        Self::with(&[COMMON, V1, SESSION_MESSAGE])
    }

    pub(crate) fn schema(&self) -> Schema {
        Schema::read(&self.db).unwrap()
    }

    /// Runs one statement.
    pub(crate) fn sql(&self, sql: &str) -> &Self {
        self.db.execute_batch(sql).unwrap();
        self
    }

    fn insert(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> &Self {
        self.db.execute(sql, values).unwrap();
        self
    }

    /// A session row in `table`, last used `days` before [`NOW`].
    pub(crate) fn session(&self, table: &str, id: &str, parent: Option<&str>, days: i64) -> &Self {
        let used = NOW - days * DAY_MS;
        self.insert(
            &format!(
                "INSERT INTO {table} (id, project_id, parent_id, title, time_created, time_updated) VALUES (?1, 'prj_a', ?2, ?1, ?3, ?4)"
            ),
            params![id, parent, NOW - 90 * DAY_MS, used],
        )
    }

    /// A 1.x message with this `data`, `at` milliseconds after the oldest.
    pub(crate) fn message(&self, id: &str, session: &str, at: i64, data: &str) -> &Self {
        self.insert("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", params![id, session, at, data])
    }

    /// A user message.
    pub(crate) fn user(&self, id: &str, session: &str, at: i64) -> &Self {
        self.message(id, session, at, &json!({"role": "user", "time": {"created": at}}).to_string())
    }

    /// A completed assistant message.
    pub(crate) fn assistant(&self, id: &str, session: &str, at: i64) -> &Self {
        let data = json!({"role": "assistant", "time": {"created": at, "completed": at + 1}});
        self.message(id, session, at, &data.to_string())
    }

    /// A 1.x part.
    pub(crate) fn part(&self, id: &str, message: &str, session: &str, data: &str) -> &Self {
        self.insert("INSERT INTO part VALUES (?1, ?2, ?3, 0, 0, ?4)", params![id, message, session, data])
    }

    /// A 2.x row.
    pub(crate) fn row(&self, id: &str, session: &str, seq: i64, row_type: &str, data: &Value) -> &Self {
        self.insert(
            "INSERT INTO session_message VALUES (?1, ?2, ?3, ?4, 0, 0, ?5)",
            params![id, session, row_type, seq, data.to_string()],
        )
    }

    /// The next event row of an aggregate.
    pub(crate) fn event(&self, aggregate: &str, event_type: &str, data: &str) -> &Self {
        self.insert(
            "INSERT INTO event_sequence VALUES (?1, 0, NULL) ON CONFLICT DO UPDATE SET seq = seq + 1",
            params![aggregate],
        );
        self.insert(
            "INSERT INTO event SELECT printf('evt_%s_%06d', ?1, seq), ?1, seq, ?2, ?3 FROM event_sequence WHERE aggregate_id = ?1",
            params![aggregate, event_type, data],
        )
    }
}

/// A completed tool part.
pub(crate) fn tool(name: &str, output: &str) -> String {
    tool_with(name, output, &json!({}), &json!({"start": 1, "end": 2}))
}

/// A completed tool part with this metadata and time.
pub(crate) fn tool_with(name: &str, output: &str, metadata: &Value, time: &Value) -> String {
    format!(
        r#"{{"type":"tool","callID":"c","tool":"{name}","state":{{"status":"completed","input":{{}},"output":{},"title":"t","metadata":{metadata},"time":{time}}}}}"#,
        json!(output)
    )
}

/// A running tool part.
pub(crate) fn running(name: &str) -> String {
    json!({"type": "tool", "callID": "c", "tool": name, "state": {"status": "running", "input": {}, "time": {"start": 1}}}).to_string()
}

/// A text part.
pub(crate) fn text(text: &str) -> String {
    json!({"type": "text", "text": text}).to_string()
}

/// A reasoning part.
pub(crate) fn reasoning(text: &str) -> String {
    json!({"type": "reasoning", "text": text, "time": {"start": 1, "end": 2}}).to_string()
}
