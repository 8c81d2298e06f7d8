//! The list of sessions: every id that has a session row in either layout, and every id that other rows name.

use std::collections::BTreeMap;

use headwater_model::{SessionId, UnixMillis};
use headwater_prune::decide::SessionState;
use headwater_prune::tree::{Forest, Link};
use rusqlite::Connection;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::schema::Schema;

/// One session, whatever layouts hold it. A session that both hold is one session, and the 2.x row is the live one (fact B2).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Session {
    pub(crate) id: Box<str>,
    /// Rowid of its row in `session`.
    pub(crate) v1: Option<i64>,
    /// Rowid of its row in `session_v2`.
    pub(crate) v2: Option<i64>,
    pub(crate) parent: Option<Box<str>>,
    /// Position in [`Roster::projects`], `None` without a session row.
    pub(crate) project: Option<usize>,
    /// Latest of the times at which its rows say it was used.
    pub(crate) last_use: UnixMillis,
    pub(crate) is_archived: bool,
    pub(crate) state: SessionState,
    /// Whether the event log has a record that the session was deleted while only its 1.x rows are left and 2.x is in use: the
    /// evidence without which nothing is left over (P15).
    pub(crate) deleted_in_v2: bool,
}

impl Session {
    /// Whether any session row exists. Rows that name no session row may be the only copy of something (P15).
    pub(crate) fn exists(&self) -> bool {
        self.v1.is_some() || self.v2.is_some()
    }
}

/// All sessions of a database, sorted by id. Holds some 200 bytes per session and nothing per row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    pub(crate) sessions: Vec<Session>,
    /// Project ids, in the order in which they were met.
    pub(crate) projects: Vec<Box<str>>,
    /// Whether the 2.x layout is in use: `session_v2` has rows.
    pub(crate) v2_in_use: bool,
    /// Session rows whose id is not usable text; nothing of them is ever selected.
    pub(crate) unreadable: u64,
}

/// Tables that name a session in each row, and the column that does.
pub(crate) const SESSION_COLUMNS: &[(&str, &str)] = &[
    ("event", "aggregate_id"),
    ("message", "session_id"),
    ("part", "session_id"),
    ("session_message", "session_id"),
];

/// Tables whose rows say that input waits: table, condition.
const WAITING_INPUT: &[(&str, &str, &str)] = &[
    ("session_inbox", "session_id", "1"),
    ("session_pending", "session_id", "1"),
    ("session_input", "promoted_seq", "promoted_seq IS NULL"),
];

impl Roster {
    /// Reads the roster. One statement per table, none of which reads a payload.
    pub(crate) fn read(connection: &Connection, schema: &Schema) -> rusqlite::Result<Self> {
        let mut reading =
            Reading { roster: Self::default(), by_id: BTreeMap::new(), projects: BTreeMap::new() };
        if schema.has("session", "id") {
            reading.add_rows(connection, schema, "session")?;
        }
        if schema.has("session_v2", "id") {
            reading.add_rows(connection, schema, "session_v2")?;
        }
        reading.add_states(connection, schema)?;
        for (table, column) in SESSION_COLUMNS {
            if schema.has(table, column) {
                reading.add_named(connection, table, column)?;
            }
        }
        let mut roster = reading.finish();
        roster.find_deleted(connection, schema)?;
        Ok(roster)
    }

    fn find_deleted(&mut self, connection: &Connection, schema: &Schema) -> rusqlite::Result<()> {
        if !self.v2_in_use || !schema.has("event", "aggregate_id") || !schema.has("event", "type") {
            return Ok(());
        }
        let mut statement = connection.prepare(
            "SELECT 1 FROM event WHERE aggregate_id = ?1 AND type >= 'session.deleted' AND type < 'session.deletee'",
        )?;
        for session in self.sessions.iter_mut().filter(|session| session.v1.is_some() && session.v2.is_none())
        {
            session.deleted_in_v2 = statement.exists([session.id.as_ref()])?;
        }
        Ok(())
    }

    /// The trees over [`Roster::sessions`], by position.
    pub(crate) fn forest(&self) -> Forest {
        let links: Vec<Link<'_>> = self
            .sessions
            .iter()
            .map(|session| Link { id: &session.id, parent: session.parent.as_deref() })
            .collect();
        Forest::new(&links)
    }

    /// The position of a session.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.sessions.binary_search_by(|session| session.id.as_ref().cmp(id)).ok()
    }
}

struct Reading {
    roster: Roster,
    by_id: BTreeMap<Box<str>, Session>,
    projects: BTreeMap<Box<str>, usize>,
}

impl Reading {
    fn add_rows(&mut self, connection: &Connection, schema: &Schema, table: &str) -> rusqlite::Result<()> {
        let is_v2 = table == "session_v2";
        let column = |name: &str| if schema.has(table, name) { name.to_owned() } else { "NULL".to_owned() };
        let is_set = |name: &str| format!("{} IS NOT NULL", column(name));
        let times: Vec<String> = ["time_updated", "time_idle", "time_viewed"]
            .iter()
            .map(|name| format!("CAST(coalesce({}, 0) AS INTEGER)", column(name)))
            .collect();
        let mut statement = connection.prepare(&format!(
            "SELECT rowid, id, nullif({}, ''), {}, max({}), {}, {}, {}, {} FROM {table}",
            column("parent_id"),
            column("project_id"),
            times.join(", "),
            is_set("time_archived"),
            is_set("time_suspended"),
            is_set("time_compacting"),
            is_set("revert"),
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.roster.v2_in_use |= is_v2;
            let Some(id) = usable_id(row.get_ref(1)?) else {
                self.roster.unreadable += 1;
                continue;
            };
            let project = self.project(row.get_ref(3)?.as_str().unwrap_or_default());
            let state = SessionState {
                suspended: row.get(6)?,
                compacting: row.get(7)?,
                revert_staged: row.get(8)?,
                ..SessionState::default()
            };
            let rowid = row.get(0)?;
            let parent = row.get_ref(2)?.as_str().ok().map(Into::into);
            let last_use = UnixMillis::new(row.get(4)?);
            let is_archived: bool = row.get(5)?;
            let session = self.session(&id);
            *(if is_v2 { &mut session.v2 } else { &mut session.v1 }) = Some(rowid);
            session.parent = parent;
            session.project = Some(project);
            session.last_use = session.last_use.max(last_use);
            session.is_archived |= is_archived;
            session.state = session.state.or(state);
        }
        Ok(())
    }

    fn add_states(&mut self, connection: &Connection, schema: &Schema) -> rusqlite::Result<()> {
        for (table, column, condition) in WAITING_INPUT {
            if schema.has(table, "session_id") && schema.has(table, column) {
                let sql = format!("SELECT DISTINCT session_id FROM {table} WHERE {condition}");
                let waiting = SessionState { input_waiting: true, ..SessionState::default() };
                self.add_state(connection, &sql, waiting)?;
            }
        }
        if schema.has("event_sequence", "owner_id") {
            let sql = "SELECT aggregate_id FROM event_sequence WHERE owner_id IS NOT NULL";
            let owned = SessionState { owned_elsewhere: true, ..SessionState::default() };
            self.add_state(connection, sql, owned)?;
        }
        Ok(())
    }

    fn add_state(&mut self, connection: &Connection, sql: &str, state: SessionState) -> rusqlite::Result<()> {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(id) = usable_id(row.get_ref(0)?) {
                let session = self.session(&id);
                session.state = session.state.or(state);
            }
        }
        Ok(())
    }

    /// Adds the ids that rows of `table` name. Steps from one id to the next where an index allows it.
    fn add_named(&mut self, connection: &Connection, table: &str, column: &str) -> rusqlite::Result<()> {
        if !has_leading_index(connection, table, column)? {
            let sql = format!("SELECT DISTINCT {column} FROM {table}");
            return self.add_state(connection, &sql, SessionState::default());
        }
        let first = format!("SELECT min({column}) FROM {table}");
        let mut next =
            connection.prepare(&format!("SELECT min({column}) FROM {table} WHERE {column} > ?1"))?;
        let mut value: Value = connection.query_row(&first, [], |row| row.get_ref(0).map(stored))?;
        while let Value::Id(text) = value {
            if let Some(id) = usable_id(ValueRef::Text(&text)) {
                self.session(&id);
            }
            value = next.query_row([Bound(&text)], |row| row.get_ref(0).map(stored))?;
        }
        Ok(())
    }

    fn session(&mut self, id: &str) -> &mut Session {
        if !self.by_id.contains_key(id) {
            let session = Session { id: id.into(), ..Session::default() };
            self.by_id.insert(id.into(), session);
        }
        self.by_id.entry(id.into()).or_default()
    }

    fn project(&mut self, id: &str) -> usize {
        if let Some(position) = self.projects.get(id) {
            return *position;
        }
        let position = self.roster.projects.len();
        self.roster.projects.push(id.into());
        self.projects.insert(id.into(), position);
        position
    }

    fn finish(mut self) -> Roster {
        self.roster.sessions = self.by_id.into_values().collect();
        self.roster
    }
}

/// A value of a column that names sessions, as stored: text that may not be UTF-8, or the end of the text values.
enum Value {
    Id(Vec<u8>),
    End,
}

fn stored(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Text(text) => Value::Id(text.to_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => Value::End,
    }
}

/// Text bound as it was stored, UTF-8 or not.
struct Bound<'a>(&'a [u8]);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

fn usable_id(value: ValueRef<'_>) -> Option<String> {
    let id = value.as_str().ok()?;
    SessionId::new(id).ok().map(String::from)
}

/// Whether an index begins with `column`, so that all rows of one session are found without reading the table.
pub(crate) fn has_leading_index(
    connection: &Connection,
    table: &str,
    column: &str,
) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM pragma_index_list(?1) l JOIN pragma_index_info(l.name) c \
         WHERE c.seqno = 0 AND c.name = ?2 AND l.partial = 0",
    )?;
    statement.exists([table, column])
}
