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

/// What all rows of one type have in common.
#[derive(Clone, Debug)]
struct EventType {
    stored: Box<str>,
    name: NameIndex,
    origin: Origin,
    copy: Option<CopyType>,
}

impl EventType {
    fn new(stored: &str, names: &mut Names) -> Self {
        Self {
            stored: stored.into(),
            name: names.index(stored),
            origin: origin(stored),
            copy: CopyType::of(stored),
        }
    }
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

    fn add(&mut self, event_type: &EventType, rowid: i64, length: u64) {
        let rows = match event_type.origin {
            Origin::V1 => &mut self.v1,
            Origin::Deletion => &mut self.deletions,
            Origin::SessionNext | Origin::Other => &mut self.other,
        };
        rows.add(rowid, length);
        self.has_session_next |= event_type.origin == Origin::SessionNext;
        self.has_content |= event_type.copy.is_some_and(|copy| copy != CopyType::Session);
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

/// The statements and the handle for event rows.
pub(crate) struct EventReader<'db> {
    rows: Statement<'db>,
    number_bytes: Statement<'db>,
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
            // The index on these three columns answers this without the table, type by type, newest first.
            rows: connection.prepare(
                "SELECT rowid, type FROM event WHERE aggregate_id = ?1 ORDER BY type DESC, seq DESC",
            )?,
            number_bytes: connection.prepare("SELECT octet_length(data) FROM event WHERE rowid = ?1")?,
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
        let mut event_type = EventType::new(Names::OTHER, names);
        while let Some(row) = rows.next()? {
            let rowid = row.get(0)?;
            let stored = row.get_ref(1)?.as_str().unwrap_or(Names::OTHER);
            if stored != event_type.stored.as_ref() {
                event_type = EventType::new(stored, names);
            }
            let text_bytes = self.data.length(rowid)?;
            let length = match text_bytes {
                Some(length) => length,
                None => self.number_bytes.query_row([rowid], |row| crate::survey::byte_length(row, 0))?,
            };
            visit(EventRow { rowid, event_type: event_type.name, length });
            events.add(&event_type, rowid, length);
            let Some(copy) = event_type.copy.filter(|_| find_superseded) else { continue };
            let is_superseded = match text_bytes {
                Some(length) => is_superseded(&mut self.data, &mut self.newest, copy, stored, rowid, length)?,
                None => None,
            };
            match is_superseded {
                Some(true) => events.superseded.add(rowid, length),
                Some(false) => {}
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

/// Whether a newer copy of the entity of this row was seen, `None` where the entity cannot be read. `data` stands on the row.
fn is_superseded(
    data: &mut Payloads<'_>,
    newest: &mut NewestCopies,
    copy: CopyType,
    event_type: &str,
    rowid: i64,
    length: u64,
) -> rusqlite::Result<Option<bool>> {
    if let Some(entity) = usual_entity(copy, data.begin(USUAL_BYTES)?) {
        return Ok(Some(newest.is_superseded(copy, entity)));
    }
    let mut text = RowText { payloads: data, rowid, length, depth: Depth::Prefix };
    let entity = text.event_entity(event_type)?;
    Ok(entity.map(|entity| newest.is_superseded(copy, &entity)))
}

/// Bytes in which the entity stands in a row as OpenCode writes it.
const USUAL_BYTES: usize = 192;

/// The id of the entity where the row begins word for word as OpenCode writes it, which all but a few rows do. Gives the same answer as
/// [`headwater_prune::event_entity`] in a twentieth of its time, or none.
fn usual_entity(copy: CopyType, begin: &[u8]) -> Option<&str> {
    let (_, rest) = plain_id(begin.strip_prefix(br#"{"sessionID":""#)?)?;
    let member: &[u8] = match copy {
        CopyType::Session | CopyType::Message => br#","info":{"id":""#,
        CopyType::Part => br#","part":{"id":""#,
    };
    plain_id(rest.strip_prefix(member)?).map(|(id, _)| id)
}

/// The id that ends with the first quote, and what follows the quote, where all of it is letters, digits, `_` and `-`.
fn plain_id(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')))?;
    let (id, rest) = (str::from_utf8(&text[..end]).ok()?, text[end..].strip_prefix(b"\"")?);
    (!id.is_empty()).then_some((id, rest))
}

#[cfg(test)]
mod tests {
    use headwater_prune::{Facts, event_entity};

    use super::*;

    #[test]
    fn the_usual_beginning_gives_the_answer_of_the_scanner_or_none() {
        let begins = [
            r#"{"sessionID":"ses_1","info":{"id":"msg_1","role":"user"}}"#,
            r#"{"sessionID":"ses_1","part":{"id":"prt_1"}}"#,
            r#"{"sessionID":"ses_1","info":{"id":""}}"#,
            r#"{"sessionID":"","info":{"id":"msg_1"}}"#,
            r#"{"sessionID":"ses_1","info":{"id":"m\u0073g"}}"#,
            r#"{"sessionID":"ses_1","info":{"role":"user","id":"msg_1"}}"#,
            r#"{"info":{"id":"msg_1"},"sessionID":"ses_1"}"#,
            r#"{ "sessionID": "ses_1", "info": { "id": "msg_1" } }"#,
            r#"{"sessionID":"ses_1","info":{"id":"msg_1"#,
            "",
        ];
        let types = [
            (CopyType::Session, "session.updated.1"),
            (CopyType::Message, "message.updated.1"),
            (CopyType::Part, "message.part.updated.1"),
        ];
        let mut found = 0;
        for begin in begins {
            for (copy, event_type) in types {
                let Some(usual) = usual_entity(copy, begin.as_bytes()) else { continue };
                found += 1;
                let Facts::Known(Some(entity)) = event_entity(event_type, begin.as_bytes(), false) else {
                    panic!("{begin} has no entity for the scanner");
                };
                assert_eq!(entity.id.as_ref(), usual, "{begin}");
            }
        }
        assert_eq!(found, 3);
    }
}
