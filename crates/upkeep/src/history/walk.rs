//! The rows of a session in the order of its history.

use rusqlite::{Connection, OptionalExtension, params};

use super::cursor::Place;
use super::scope::Scope;
use crate::schema::Schema;

/// Which rows of a session, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// `session_message`, by `seq`.
    V2,
    /// `message`, by time and id.
    V1,
    /// `event`, by `seq`.
    Events,
}

impl Segment {
    const ALL: [Self; 3] = [Self::V2, Self::V1, Self::Events];

    fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn table(self) -> &'static str {
        match self {
            Self::V2 => "session_message",
            Self::V1 => "message",
            Self::Events => "event",
        }
    }

    fn session_column(self) -> &'static str {
        if self == Self::Events { "aggregate_id" } else { "session_id" }
    }

    fn order(self) -> &'static str {
        if self == Self::V1 { "time_created" } else { "seq" }
    }

    fn is_in(self, schema: &Schema) -> bool {
        ["id", "data", self.session_column(), self.order()]
            .iter()
            .all(|column| schema.has(self.table(), column))
    }
}

/// One message, or one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) segment: Segment,
    pub(super) rowid: i64,
    pub(super) session: String,
    pub(super) id: String,
    /// Bytes of its own row.
    pub(super) bytes: u64,
    order: i64,
}

/// Goes through the rows of a scope.
pub(super) struct Walk<'a> {
    connection: &'a Connection,
    schema: &'a Schema,
    scope: &'a Scope,
    with_events: bool,
    place: Place,
}

impl<'a> Walk<'a> {
    /// Goes on at `place`, or begins.
    pub(super) fn new(
        connection: &'a Connection,
        schema: &'a Schema,
        scope: &'a Scope,
        with_events: bool,
        place: Option<Place>,
    ) -> rusqlite::Result<Self> {
        let place = match place {
            Some(place) => place,
            None => Place { session: None, segment: 0, after: None, horizon: horizon(connection, schema)? },
        };
        Ok(Self { connection, schema, scope, with_events, place })
    }

    /// Where the walk stands.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The next row of the session at hand; `None` when it has no more.
    pub(super) fn next_stop(&mut self) -> rusqlite::Result<Option<Stop>> {
        let Some(session) = self.place.session.clone() else { return Ok(None) };
        while let Some(&segment) = Segment::ALL.get(usize::from(self.place.segment)) {
            let is_wanted = segment.is_in(self.schema) && (segment != Segment::Events || self.with_events);
            let found = if is_wanted { self.row(segment, &session)? } else { None };
            if let Some(stop) = found {
                self.place.after = Some((stop.order, stop.id.clone()));
                return Ok(Some(stop));
            }
            self.place.segment = segment.number() + 1;
            self.place.after = None;
        }
        Ok(None)
    }

    /// Goes to the next session; false at the end.
    pub(super) fn next_session(&mut self) -> rusqlite::Result<bool> {
        let next = self.scope.next_session(self.connection, self.schema, self.place.session.as_deref())?;
        let is_found = next.is_some();
        if is_found {
            self.place.session = next;
            self.place.segment = 0;
            self.place.after = None;
        }
        Ok(is_found)
    }

    fn row(&self, segment: Segment, session: &str) -> rusqlite::Result<Option<Stop>> {
        let (table, column, order) = (segment.table(), segment.session_column(), segment.order());
        // A message that 2.x has copied was looked at there.
        let other = if segment == Segment::V1 && Segment::V2.is_in(self.schema) {
            "AND NOT EXISTS (SELECT 1 FROM session_message v WHERE v.id = message.id AND v.session_id = message.session_id)"
        } else {
            ""
        };
        let sql = format!(
            "SELECT rowid, id, octet_length(data), {order} FROM {table} WHERE {column} = ?1 AND ({order}, id) > (?2, ?3) \
             AND rowid <= ?4 {other} ORDER BY {order}, id LIMIT 1"
        );
        let (after, id) = self.place.after.clone().unwrap_or((i64::MIN, String::new()));
        let horizon = self.place.horizon[usize::from(segment.number())];
        self.connection
            .prepare_cached(&sql)?
            .query_row(params![session, after, id, horizon], |row| {
                Ok(Stop {
                    segment,
                    rowid: row.get(0)?,
                    session: session.to_owned(),
                    id: row.get(1)?,
                    bytes: row.get::<_, Option<i64>>(2)?.and_then(|bytes| bytes.try_into().ok()).unwrap_or(0),
                    order: row.get(3)?,
                })
            })
            .optional()
    }
}

/// The highest rowid of each segment at this moment.
fn horizon(connection: &Connection, schema: &Schema) -> rusqlite::Result<[i64; 3]> {
    let mut highest = [i64::MIN; 3];
    for segment in Segment::ALL {
        if segment.is_in(schema) {
            let sql = format!("SELECT max(rowid) FROM {}", segment.table());
            let found: Option<i64> = connection.query_row(&sql, [], |row| row.get(0))?;
            highest[usize::from(segment.number())] = found.unwrap_or(i64::MIN);
        }
    }
    Ok(highest)
}
