//! Reads the event rows of one aggregate, newest first.

use headwater_prune::superseded::{CopyType, NewestCopies};
use rusqlite::{Connection, Statement};

use super::content::{NameIndex, Names};
use super::facts::{Depth, RowText};
use super::payload::Payloads;
use crate::schema::Schema;

/// Event rows and their bytes.
#[derive(Debug, Default)]
pub(crate) struct EventRows {
    pub(crate) rows: Vec<i64>,
    pub(crate) bytes: u64,
}

impl EventRows {
    fn add(&mut self, rowid: i64, length: u64) {
        self.rows.push(rowid);
        self.bytes = self.bytes.saturating_add(length);
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }

    pub(crate) fn len(&self) -> u64 {
        self.rows.len() as u64
    }
}

/// What an event row says about the storage that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A type that 1.x writes and needs no more (fact A4).
    V1,
    /// A record that the session was deleted: evidence, never taken by an event class.
    Deletion,
    /// The `/api/session` routes of 1.18 (fact A11).
    SessionNext,
    /// Anything else.
    Other,
}

fn origin(event_type: &str) -> Origin {
    match event_type {
        "session.created.1"
        | "session.updated.1"
        | "message.updated.1"
        | "message.removed.1"
        | "message.part.updated.1"
        | "message.part.removed.1" => Origin::V1,
        _ if event_type.starts_with("session.deleted") => Origin::Deletion,
        _ if event_type.starts_with("session.next.") => Origin::SessionNext,
        _ => Origin::Other,
    }
}

/// The event rows of one aggregate, divided for the decision. Holds eight to sixteen bytes per row.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Rows of types that 1.x writes.
    pub(crate) v1: EventRows,
    /// Rows of every other type but records of deletion.
    pub(crate) other: EventRows,
    /// Records of deletion.
    pub(crate) deletions: EventRows,
    /// Rows of `v1` that a newer copy of the same entity replaced.
    pub(crate) superseded: EventRows,
    /// Whether a row comes from the `/api/session` routes of 1.18.
    pub(crate) has_session_next: bool,
    /// Whether a row of `v1` is a copy of a message or a part.
    pub(crate) has_content: bool,
    /// Copies whose entity cannot be read; they stay.
    pub(crate) unreadable: Unreadable,
}

/// Rows that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Events {
    pub(crate) fn clear(&mut self) {
        for rows in [&mut self.v1, &mut self.other, &mut self.deletions, &mut self.superseded] {
            rows.clear();
        }
        (self.has_session_next, self.has_content, self.unreadable) = (false, false, Unreadable::default());
    }

    /// Rows in all.
    pub(crate) fn len(&self) -> u64 {
        self.v1.len() + self.other.len() + self.deletions.len()
    }
}

/// One event row, for a caller that adds up figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRow {
    pub(crate) rowid: i64,
    /// Name of its type.
    pub(crate) event_type: NameIndex,
    pub(crate) length: u64,
}

/// The statement and handle for event rows.
pub(crate) struct EventReader<'db> {
    rows: Statement<'db>,
    data: Payloads<'db>,
    newest: NewestCopies,
}

impl<'db> EventReader<'db> {
    /// `None` where the file has no event rows or lacks a column without which they cannot be judged.
    pub(crate) fn new(connection: &'db Connection, schema: &Schema) -> rusqlite::Result<Option<Self>> {
        if !["id", "aggregate_id", "seq", "type", "data"].iter().all(|column| schema.has("event", column)) {
            return Ok(None);
        }
        Ok(Some(Self {
            rows: connection.prepare(
                "SELECT rowid, type, octet_length(data), typeof(data) = 'text' FROM event WHERE aggregate_id = ?1 \
                 ORDER BY seq DESC",
            )?,
            data: Payloads::new(connection, "event"),
            newest: NewestCopies::default(),
        }))
    }

    /// Reads the rows of `aggregate` into `events`, which is empty, and shows each to `visit`. Payloads are looked at only
    /// where `find_superseded` says so.
    pub(crate) fn read(
        &mut self,
        aggregate: &str,
        find_superseded: bool,
        names: &mut Names,
        events: &mut Events,
        mut visit: impl FnMut(EventRow),
    ) -> rusqlite::Result<()> {
        self.newest.clear();
        let mut rows = self.rows.query([aggregate])?;
        while let Some(row) = rows.next()? {
            let rowid = row.get(0)?;
            let event_type = row.get_ref(1)?.as_str().unwrap_or(Names::OTHER);
            let length = crate::survey::byte_length(row, 2)?;
            visit(EventRow { rowid, event_type: names.index(event_type), length });
            match origin(event_type) {
                Origin::V1 => events.v1.add(rowid, length),
                Origin::Deletion => events.deletions.add(rowid, length),
                Origin::SessionNext => {
                    events.has_session_next = true;
                    events.other.add(rowid, length);
                }
                Origin::Other => events.other.add(rowid, length),
            }
            let Some(copy) = CopyType::of(event_type) else { continue };
            events.has_content |= copy != CopyType::Session;
            if !find_superseded {
                continue;
            }
            let entity = if row.get(3)? {
                let mut text = RowText { payloads: &mut self.data, rowid, length, depth: Depth::Prefix };
                text.event_entity(event_type)?
            } else {
                None
            };
            match entity {
                Some(entity) if self.newest.is_superseded(copy, entity.as_ref()) => {
                    events.superseded.add(rowid, length);
                }
                Some(_) => {}
                None => {
                    events.unreadable.rows += 1;
                    events.unreadable.bytes += length;
                }
            }
        }
        Ok(())
    }

    /// Gives up every handle that holds a read transaction open.
    pub(crate) fn release(&mut self) {
        self.data.release();
    }
}
