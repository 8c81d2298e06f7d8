//! Rows and payload bytes of sessions, by index or by one pass over each table.

use headwater_model::ByteCount;

use super::roll::Roll;
use super::{SessionBytes, SessionQuery, SessionSort};
use crate::observer::{Observer, Progress, Unit};
use crate::open::ReadDatabase;
use crate::reading::{ReadError, SHORT_BYTES_MAX, count_of};
use crate::survey::roster::has_leading_index;

/// Most sessions that are measured one by one. A pass over a table costs as much as looking up about this many.
const BY_INDEX_MAX: usize = 100;

/// Rows between two reports of progress.
const REPORT_ROWS: u64 = 1 << 14;

/// The tables that hold payload, each with the column that names the session.
const TABLES: [(&str, &str); 4] = [
    ("message", "session_id"),
    ("part", "session_id"),
    ("session_message", "session_id"),
    ("event", "aggregate_id"),
];

/// Rows and bytes of one session, by position in [`TABLES`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    rows: [u64; TABLES.len()],
    bytes: [u64; TABLES.len()],
}

impl Totals {
    pub(super) fn bytes(&self) -> SessionBytes {
        let [messages, parts, session_messages, events] = self.bytes.map(ByteCount::new);
        SessionBytes {
            total: [messages, parts, session_messages, events].into_iter().sum(),
            messages,
            parts,
            session_messages,
            events,
        }
    }

    /// Messages of the conversation: the 2.x copy of a migrated session is the live one.
    pub(super) fn messages(&self, in_session_v2: bool) -> u64 {
        let [messages, _, session_messages, _] = self.rows;
        if in_session_v2 { session_messages } else { messages.saturating_add(session_messages) }
    }

    fn add(&mut self, table: usize, rows: u64, bytes: u64) {
        self.rows[table] = self.rows[table].saturating_add(rows);
        self.bytes[table] = self.bytes[table].saturating_add(bytes);
    }
}

/// How sizes are found.
pub(super) struct Measure<'db> {
    database: &'db ReadDatabase,
    by_index: bool,
}

impl<'db> Measure<'db> {
    /// Chooses the way, and makes the pass where that is the way.
    pub(super) fn new(
        database: &'db ReadDatabase,
        query: &SessionQuery,
        roll: &mut Roll,
        observer: &dyn Observer,
    ) -> Result<Self, ReadError> {
        let listed =
            usize::try_from(roll.matching()).unwrap_or(usize::MAX).min(query.limit.unwrap_or(usize::MAX));
        let few =
            listed <= BY_INDEX_MAX && (query.sort != SessionSort::Bytes || roll.len() <= BY_INDEX_MAX as u64);
        let measure = Self { database, by_index: few && all_indexed(database)? };
        if !measure.by_index {
            measure.pass(roll, observer)?;
        } else if query.sort == SessionSort::Bytes {
            for position in 0..usize::try_from(roll.len()).unwrap_or(0) {
                roll.entry_mut(position).totals = measure.look_up(&roll.entry(position).id)?;
            }
        }
        Ok(measure)
    }

    pub(super) fn of(&mut self, roll: &Roll, position: usize) -> Result<Totals, ReadError> {
        let entry = roll.entry(position);
        if self.by_index { self.look_up(&entry.id) } else { Ok(entry.totals) }
    }

    fn look_up(&self, id: &str) -> Result<Totals, ReadError> {
        let mut totals = Totals::default();
        for (at, (table, column)) in TABLES.into_iter().enumerate() {
            if !self.database.schema().has(table, "data") {
                continue;
            }
            let mut statement = self.database.connection().prepare_cached(&format!(
                "SELECT count(*), sum(octet_length(data)) FROM {table} WHERE {column} = ?1"
            ))?;
            statement.query_row([id], |row| {
                totals.add(at, count_of(row, 0)?, count_of(row, 1)?);
                Ok(())
            })?;
        }
        Ok(totals)
    }

    fn pass(&self, roll: &mut Roll, observer: &dyn Observer) -> Result<(), ReadError> {
        let mut done = 0;
        for (at, (table, column)) in TABLES.into_iter().enumerate() {
            if !(self.database.schema().has(table, "data") && self.database.schema().has(table, column)) {
                continue;
            }
            // In storage order: an index would fetch the rows of a large table in a random one.
            let mut statement = self.database.connection().prepare(&format!(
                "SELECT CASE WHEN octet_length({column}) <= {SHORT_BYTES_MAX} THEN {column} END, octet_length(data) \
                 FROM {table} NOT INDEXED"
            ))?;
            let mut rows = statement.query([])?;
            // Rows of a session lie together, so the last position is mostly right.
            let mut last: Option<usize> = None;
            while let Some(row) = rows.next()? {
                done += 1;
                if done % REPORT_ROWS == 0 {
                    observer.progress(Progress {
                        phase: "measuring sessions",
                        done,
                        total: None,
                        unit: Unit::Rows,
                    });
                    if observer.is_cancelled() {
                        return Err(ReadError::Cancelled);
                    }
                }
                let Ok(id) = row.get_ref(0)?.as_str() else { continue };
                if last.is_none_or(|position| roll.entry(position).id.as_ref() != id) {
                    last = roll.position(id);
                }
                if let Some(position) = last {
                    let bytes = count_of(row, 1)?;
                    roll.entry_mut(position).totals.add(at, 1, bytes);
                }
            }
        }
        Ok(())
    }
}

fn all_indexed(database: &ReadDatabase) -> rusqlite::Result<bool> {
    for (table, column) in TABLES {
        if database.schema().has_table(table) && !has_leading_index(database.connection(), table, column)? {
            return Ok(false);
        }
    }
    Ok(true)
}
