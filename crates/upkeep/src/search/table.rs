//! The tables that hold text, and the statements that read them. Columns by name; what a file does not have is NULL.

use crate::reading::{or_null, short};
use crate::schema::Schema;

use super::hit::Source;

/// Rows up to this size are read whole; larger ones in chunks. Two threads with one row each, decoded once, stay far below 64 MiB.
pub(crate) const WHOLE_ROW_BYTES_MAX: i64 = 4 << 20;

/// One table to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// What its rows are.
    pub(crate) source: Source,
    /// Its name.
    pub(crate) name: &'static str,
    /// The column with the text.
    pub(crate) column: &'static str,
    /// The column that names the session.
    session: &'static str,
    /// The order of one session's rows; an index of OpenCode's has it.
    session_order: &'static str,
}

const TABLES: [Table; 6] = [
    Table {
        source: Source::Session,
        name: "session_v2",
        column: "title",
        session: "id",
        session_order: "rowid",
    },
    Table {
        source: Source::Session,
        name: "session",
        column: "title",
        session: "id",
        session_order: "rowid",
    },
    Table {
        source: Source::SessionMessage,
        name: "session_message",
        column: "data",
        session: "session_id",
        session_order: "seq",
    },
    Table {
        source: Source::Message,
        name: "message",
        column: "data",
        session: "session_id",
        session_order: "time_created, id",
    },
    Table {
        source: Source::Part,
        name: "part",
        column: "data",
        session: "session_id",
        session_order: "rowid",
    },
    Table {
        source: Source::Event,
        name: "event",
        column: "data",
        session: "aggregate_id",
        session_order: "seq",
    },
];

impl Table {
    /// The tables of a file in the order in which they are searched.
    pub(crate) fn all(schema: &Schema, with_events: bool) -> Vec<Self> {
        let is_there = |table: &Table| {
            (with_events || table.source != Source::Event)
                && schema.has(table.name, table.column)
                && schema.tables().get(table.name).is_some_and(|found| found.has_rowid)
        };
        TABLES.into_iter().filter(is_there).collect()
    }

    /// The table of conversation rows that `source` names, where the file has it.
    pub(crate) fn of(source: Source, schema: &Schema) -> Option<Self> {
        Self::all(schema, true).into_iter().find(|table| table.source == source)
    }

    /// The first rowid from `?1` to `?2`, or the last.
    pub(crate) fn next_rowid(&self, descending: bool) -> String {
        let direction = if descending { "DESC" } else { "ASC" };
        format!(
            "SELECT rowid FROM {} WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid {direction} LIMIT 1",
            self.name
        )
    }

    /// Rows from `?1` to `?2`: rowid, and the text; NULL where it is too large to be read at once.
    pub(crate) fn range(&self, descending: bool) -> String {
        let direction = if descending { "DESC" } else { "ASC" };
        format!("{} WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid {direction}", self.select())
    }

    /// The same for the rows of session `?1`, in their order.
    pub(crate) fn of_session(&self, schema: &Schema, descending: bool) -> String {
        let has_order =
            self.session_order.split(", ").all(|column| column == "rowid" || schema.has(self.name, column));
        let order = if has_order { self.session_order } else { "rowid" };
        let order = if descending { order.replace(", ", " DESC, ") + " DESC" } else { order.to_owned() };
        format!("{} WHERE {} = ?1 ORDER BY {order}", self.select(), self.session)
    }

    fn select(&self) -> String {
        let (name, column) = (self.name, self.column);
        format!(
            "SELECT rowid, CASE WHEN octet_length({column}) <= {WHOLE_ROW_BYTES_MAX} THEN {column} END FROM {name}"
        )
    }

    /// Bytes of the text of row `?1`, 0 where it has none.
    pub(crate) fn bytes(&self) -> String {
        format!("SELECT coalesce(octet_length({}), 0) FROM {} WHERE rowid = ?1", self.column, self.name)
    }

    /// What row `?1` is: id, message, session, row type, time.
    pub(crate) fn identity(&self, schema: &Schema) -> String {
        let column = |name: &str| short(schema, self.name, name);
        let null = || "NULL".to_owned();
        let (message, row_type, time) = match self.source {
            Source::Session => (null(), null(), "time_created"),
            Source::Message => (column("id"), null(), "time_created"),
            Source::Part => (column("message_id"), null(), "time_created"),
            Source::SessionMessage => (column("id"), column("type"), "time_created"),
            Source::Event => (null(), column("type"), "created"),
        };
        format!(
            "SELECT {}, {message}, {}, {row_type}, {} FROM {} WHERE rowid = ?1",
            column("id"),
            column(self.session),
            or_null(schema, self.name, time),
            self.name
        )
    }
}
