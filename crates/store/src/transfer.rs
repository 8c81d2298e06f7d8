//! Rows as they are stored, to be written out whole and taken in again: byte for byte, whatever they hold.
//!
//! A [`StoredRow`] has the columns of the tables that belong to a conversation (C1), by name; what else a host keeps in these tables is its own and
//! stays with it.

mod line;

pub use line::{FORMAT_VERSION, Line, LineError};

use headwater_model::WallTime;
use headwater_model::conversation::Receipt;

use crate::BadMutation;

/// A table whose rows can be written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// What owns tasks.
    Workspaces,
    /// What owns sessions.
    Tasks,
    /// Sessions.
    Sessions,
    /// Turns.
    Turns,
    /// Messages.
    Messages,
    /// The last number of a prompt, by session.
    PromptSeq,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A time.
    Time,
}

impl Table {
    /// All of them; each comes behind those that its rows refer to.
    pub const ALL: [Self; 6] =
        [Self::Workspaces, Self::Tasks, Self::Sessions, Self::Turns, Self::Messages, Self::PromptSeq];

    /// Its name in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workspaces => "workspaces",
            Self::Tasks => "tasks",
            Self::Sessions => "task_sessions",
            Self::Turns => "task_session_turns",
            Self::Messages => "task_session_messages",
            Self::PromptSeq => "task_session_prompt_seq",
        }
    }

    /// The table of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its columns, the key first.
    pub const fn columns(self) -> &'static [(&'static str, Holds)] {
        use Holds::{Integer, Text, Time};
        match self {
            Self::Workspaces => &[("id", Text), ("name", Text), ("created_at", Time), ("updated_at", Time)],
            Self::Tasks => &[
                ("id", Text),
                ("workspace_id", Text),
                ("title", Text),
                ("description", Text),
                ("state", Text),
                ("metadata", Text),
                ("created_at", Time),
                ("updated_at", Time),
            ],
            Self::Sessions => &[
                ("id", Text),
                ("task_id", Text),
                ("name", Text),
                ("state", Text),
                ("metadata", Text),
                ("started_at", Time),
                ("completed_at", Time),
                ("updated_at", Time),
            ],
            Self::Turns => &[
                ("id", Text),
                ("task_session_id", Text),
                ("task_id", Text),
                ("started_at", Time),
                ("completed_at", Time),
                ("execution_profile_id", Text),
                ("route_generation", Integer),
                ("metadata", Text),
                ("created_at", Time),
                ("updated_at", Time),
            ],
            Self::Messages => &[
                ("id", Text),
                ("task_session_id", Text),
                ("task_id", Text),
                ("turn_id", Text),
                ("author_type", Text),
                ("author_id", Text),
                ("requests_input", Integer),
                ("type", Text),
                ("prompt_seq", Integer),
                ("created_at", Time),
                ("updated_at", Time),
                ("metadata", Text),
                ("content", Text),
            ],
            Self::PromptSeq => &[("task_session_id", Text), ("last_seq", Integer)],
        }
    }

    /// The name of the column by which a row is found.
    pub const fn key(self) -> &'static str {
        self.columns()[0].0
    }
}

/// Which rows of a table are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    /// All.
    Everything,
    /// The one with this key.
    Key(&'a str),
    /// Those of this session, in the order of the conversation.
    Session(&'a str),
}

/// What is stored in one column of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The table of the database has no such column.
    Absent,
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// Text.
    Text(String),
    /// Text that is not UTF-8.
    BrokenText(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRow {
    /// Of which table.
    pub table: Table,
    /// What its columns hold, in the order of [`Table::columns`].
    pub values: Vec<Value>,
}

impl StoredRow {
    /// The value of a column; absent where the table has no such column.
    pub fn value(&self, column: &str) -> &Value {
        let place = self.table.columns().iter().position(|(name, _)| *name == column);
        place.and_then(|place| self.values.get(place)).unwrap_or(&Value::Absent)
    }

    /// The text of a column, where it holds text.
    pub fn text(&self, column: &str) -> Option<&str> {
        if let Value::Text(text) = self.value(column) { Some(text) } else { None }
    }

    /// The key by which the row is found, where it is text.
    pub fn key(&self) -> Option<&str> {
        self.text(self.table.key())
    }

    /// The session of a turn or a message.
    pub fn session(&self) -> Option<&str> {
        self.text("task_session_id")
    }

    /// Whether both rows hold the same in every column that both have.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let absent = |value: &Value| matches!(value, Value::Absent);
        self.table == other.table
            && self.values.iter().zip(&other.values).all(|(a, b)| absent(a) || absent(b) || a == b)
    }

    /// The row as a database with typed columns keeps it: times cut to microseconds and in one spelling (C34).
    ///
    /// # Errors
    /// [`BadMutation::NotStorable`] where a column holds what its type does not allow, [`BadMutation::NulCharacter`].
    pub fn typed(&self) -> Result<Self, BadMutation> {
        let typed = |value: &Value, holds: Holds| match (holds, value) {
            (Holds::Text, Value::Text(text)) if text.contains('\0') => Err(BadMutation::NulCharacter),
            (_, Value::Absent | Value::Null)
            | (Holds::Integer, Value::Integer(_))
            | (Holds::Text, Value::Text(_)) => Ok(value.clone()),
            (Holds::Time, Value::Text(text)) => {
                let time = WallTime::parse_stored(text).map_err(|_| BadMutation::NotStorable)?;
                Ok(Value::Text(time.cut_to_micros().stored_text()))
            }
            _ => Err(BadMutation::NotStorable),
        };
        let columns = self.values.iter().zip(self.table.columns());
        let values = columns.map(|(value, (_, holds))| typed(value, *holds)).collect::<Result<_, _>>()?;
        Ok(Self { table: self.table, values })
    }
}

/// What taking rows in did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Rows that were added.
    pub added: u64,
    /// Rows that were there already, the same.
    pub present: u64,
    /// One for each session whose turns or messages were among the rows.
    pub receipts: Vec<Receipt>,
}
