//! Every row of a session that goes whole.

use headwater_prune::Class;
use rusqlite::{Connection, Statement};

use super::judge::{Action, Sink, Taken};
use crate::schema::Schema;

/// Which layout a table belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    V1,
    V2,
    Both,
}

/// The tables whose rows belong to a session, parents last: table, column that names the session, layout.
const TABLES: &[(&str, &str, Home)] = &[
    ("part", "session_id", Home::V1),
    ("message", "session_id", Home::V1),
    ("todo", "session_id", Home::V1),
    ("session_share", "session_id", Home::V1),
    ("session_input", "session_id", Home::Both),
    ("session_context_epoch", "session_id", Home::Both),
    ("session_message", "session_id", Home::Both),
    ("session_inbox", "session_id", Home::V2),
    ("session_pending", "session_id", Home::V2),
    ("instruction_entry", "session_id", Home::V2),
    ("instruction_state", "session_id", Home::V2),
    ("event", "aggregate_id", Home::Both),
    ("event_sequence", "aggregate_id", Home::Both),
    ("session", "id", Home::V1),
    ("session_v2", "id", Home::V2),
];

/// Event types of 1.x that go with the 1.x rows of a session. Its record of deletion stays: it is the evidence.
const V1_EVENTS: &str = "type IN ('session.created.1', 'session.updated.1', 'message.updated.1', 'message.removed.1', \
                         'message.part.updated.1', 'message.part.removed.1')";

#[derive(Debug)]
struct TableRows<'db> {
    table: &'static str,
    home: Home,
    all: Statement<'db>,
}

/// Finds the rows of whole sessions.
#[derive(Debug)]
pub(crate) struct WholeSessions<'db> {
    tables: Vec<TableRows<'db>>,
    leftover_events: Option<Statement<'db>>,
    rows: Vec<i64>,
}

impl<'db> WholeSessions<'db> {
    pub(crate) fn new(connection: &'db Connection, schema: &Schema) -> rusqlite::Result<Self> {
        let mut tables = Vec::new();
        let mut leftover_events = None;
        for (table, column, home) in TABLES {
            if !schema.has(table, column) {
                continue;
            }
            let bytes = row_bytes(schema, table);
            let of_session = if *table == "part" && schema.has("message", "session_id") {
                // A part belongs to its message, whatever session it names.
                "session_id = ?1 OR message_id IN (SELECT id FROM message WHERE session_id = ?1)".to_owned()
            } else {
                format!("{column} = ?1")
            };
            let sql = format!("SELECT rowid, {bytes} FROM {table} WHERE {of_session}");
            tables.push(TableRows { table, home: *home, all: connection.prepare(&sql)? });
            if *table == "event" && schema.has("event", "type") {
                let sql = format!("SELECT rowid, {bytes} FROM event WHERE aggregate_id = ?1 AND {V1_EVENTS}");
                leftover_events = Some(connection.prepare(&sql)?);
            }
        }
        Ok(Self { tables, leftover_events, rows: Vec::new() })
    }

    /// Shows `sink` every row that goes with `session`: for [`Class::Sessions`] the rows of both layouts, for [`Class::Leftover`]
    /// those of 1.x, where the sequence counter and the record of deletion stay.
    pub(crate) fn take(&mut self, session: &str, class: Class, sink: &mut dyn Sink) -> rusqlite::Result<()> {
        for table in &mut self.tables {
            let statement = match (class, table.home, table.table) {
                (Class::Leftover, Home::Both, "event") => match &mut self.leftover_events {
                    Some(statement) => statement,
                    None => continue,
                },
                (Class::Leftover, Home::V2 | Home::Both, _) => continue,
                _ => &mut table.all,
            };
            self.rows.clear();
            let mut bytes = 0_u64;
            let mut rows = statement.query([session])?;
            while let Some(row) = rows.next()? {
                self.rows.push(row.get(0)?);
                bytes = bytes.saturating_add(crate::survey::byte_length(row, 1)?);
            }
            if !self.rows.is_empty() {
                let rows = &self.rows;
                sink.take(&Taken {
                    class,
                    table: table.table,
                    action: Action::Drop,
                    rows,
                    bytes,
                    is_exact: true,
                });
            }
        }
        Ok(())
    }
}

/// SQL for the bytes that one row of `table` holds: its `data` where it has one, else all its columns. Reads no overflow page.
pub(crate) fn row_bytes(schema: &Schema, table: &str) -> String {
    if schema.has(table, "data") {
        return "octet_length(data)".to_owned();
    }
    let Some(found) = schema.tables().get(table) else { return "0".to_owned() };
    let sizes: Vec<String> =
        found.columns.iter().map(|name| format!("coalesce(octet_length({}), 0)", quoted(name))).collect();
    sizes.join(" + ")
}

/// A name as an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
