//! Walks a database session by session, holding the rows of one session at a time and no read transaction for long.

use rusqlite::Connection;

use super::content::{ContentV1, ContentV2, Names};
use super::content_v1::ReaderV1;
use super::content_v2::ReaderV2;
use super::events::{EventReader, EventRow, Events};
use super::facts::Depth;
use super::roster::Session;
use crate::schema::Schema;

/// Rows after which a walk over a database in use lets its read transaction go at the end of the session.
const SLICE_ROWS: u64 = 20_000;

/// Everything that a walk knows of one session.
#[derive(Debug, Default)]
pub(crate) struct Surveyed {
    pub(crate) v1: ContentV1,
    pub(crate) v2: ContentV2,
    pub(crate) events: Events,
}

/// What a walk looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Whether message and part rows are looked at.
    pub(crate) content: bool,
    /// Whether event rows are looked at; those of a 2.x session are in any case, because content asks whether any are retained.
    pub(crate) events: bool,
    /// Whether the beginning of event rows is read to find superseded copies.
    pub(crate) superseded: bool,
    /// How much of message and part rows may be read.
    pub(crate) depth: Depth,
}

/// The readers of one connection.
pub(crate) struct Walker<'db> {
    connection: &'db Connection,
    look: Look,
    v1: Option<ReaderV1<'db>>,
    v2: Option<ReaderV2<'db>>,
    events: Option<EventReader<'db>>,
    names: Names,
    rows_in_slice: u64,
    /// Whether the transaction is this walk's own; a caller that holds one keeps it.
    owns_transaction: bool,
}

impl<'db> Walker<'db> {
    pub(crate) fn new(connection: &'db Connection, schema: &Schema, look: Look) -> rusqlite::Result<Self> {
        let content = look.content;
        Ok(Self {
            connection,
            look,
            v1: if content { ReaderV1::new(connection, schema)? } else { None },
            v2: if content { ReaderV2::new(connection, schema)? } else { None },
            events: EventReader::new(connection, schema)?,
            names: Names::default(),
            rows_in_slice: 0,
            owns_transaction: connection.is_autocommit(),
        })
    }

    /// Reads the rows of `session` into `surveyed`; shows each event row to `visit`. The rows of one session are of one instant.
    pub(crate) fn read(
        &mut self,
        session: &Session,
        surveyed: &mut Surveyed,
        visit: impl FnMut(EventRow),
    ) -> rusqlite::Result<()> {
        if self.owns_transaction && self.connection.is_autocommit() {
            self.connection.execute_batch("BEGIN")?;
        }
        let Look { depth, superseded, .. } = self.look;
        let id = &session.id;
        if let Some(reader) = &mut self.v1 {
            reader.read(id, depth, &mut self.names, &mut surveyed.v1)?;
        }
        if let Some(reader) = &mut self.v2 {
            reader.read(id, depth, &mut self.names, &mut surveyed.v2)?;
        }
        surveyed.events.clear();
        if let Some(reader) = self.events.as_mut().filter(|_| self.look.events || session.v2.is_some()) {
            reader.read(id, superseded, &mut self.names, &mut surveyed.events, visit)?;
        }
        self.rows_in_slice += surveyed.v1.messages.len() as u64
            + surveyed.v1.parts.len() as u64
            + surveyed.v2.messages.len() as u64
            + surveyed.events.len();
        if self.rows_in_slice >= SLICE_ROWS {
            self.end_slice()?;
        }
        Ok(())
    }

    /// The names that the rows refer to, at the end of the walk.
    pub(crate) fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }

    /// Lets go of the read transaction.
    pub(crate) fn end_slice(&mut self) -> rusqlite::Result<()> {
        self.rows_in_slice = 0;
        if let Some(reader) = &mut self.v1 {
            reader.release();
        }
        if let Some(reader) = &mut self.v2 {
            reader.release();
        }
        if let Some(reader) = &mut self.events {
            reader.release();
        }
        if self.owns_transaction && !self.connection.is_autocommit() {
            self.connection.execute_batch("COMMIT")?;
        }
        Ok(())
    }
}

impl Drop for Walker<'_> {
    /// A walk that ends with an error leaves no transaction behind.
    fn drop(&mut self) {
        self.v1 = None;
        self.v2 = None;
        self.events = None;
        if self.owns_transaction && !self.connection.is_autocommit() {
            // Nothing was written; an error here changes nothing for anybody.
            let _ended = self.connection.execute_batch("ROLLBACK");
        }
    }
}
