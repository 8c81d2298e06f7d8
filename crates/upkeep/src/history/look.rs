//! Searches one message in all its rows.

use std::io::BufReader;

use rusqlite::{Connection, ErrorCode, MAIN_DB};

use super::MESSAGE_BYTES_MAX;
use super::walk::{Segment, Stop};
use crate::schema::Schema;
use crate::search::{Hit, Identity, Labels, Query, RowHits, Source, Table, TextSearch, read_row};

/// What one message gave.
pub(super) enum Looked {
    /// At most one hit. `is_unreadable` says that some row of the message could not be decoded.
    Read { hit: Option<Box<Hit>>, is_unreadable: bool },
    /// Too large to be read.
    Oversized,
}

/// Searches messages for one query.
pub(super) struct Look<'a> {
    connection: &'a Connection,
    schema: &'a Schema,
    text: TextSearch<'a>,
    with_technical: bool,
    labels: Labels<'a>,
}

impl<'a> Look<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        schema: &'a Schema,
        query: &'a Query,
        with_technical: bool,
    ) -> Self {
        Self {
            connection,
            schema,
            text: TextSearch::new(query),
            with_technical,
            labels: Labels::new(connection, schema),
        }
    }

    /// Looks at the message: its own row, then its parts in id order. The first match is shown, all are counted.
    pub(super) fn at(&mut self, stop: &Stop) -> rusqlite::Result<Looked> {
        let source = match stop.segment {
            Segment::V2 => Source::SessionMessage,
            Segment::V1 => Source::Message,
            Segment::Events => Source::Event,
        };
        let mut rows = vec![(source, stop.rowid)];
        let mut bytes = stop.bytes;
        if stop.segment == Segment::V1 && self.schema.has("part", "data") {
            let sql = "SELECT rowid, octet_length(data) FROM part WHERE message_id = ?1 ORDER BY id";
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut parts = statement.query([&stop.id])?;
            while let Some(part) = parts.next()? {
                rows.push((Source::Part, part.get(0)?));
                bytes +=
                    part.get::<_, Option<i64>>(1)?.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
                if bytes > MESSAGE_BYTES_MAX {
                    break;
                }
            }
        }
        if bytes > MESSAGE_BYTES_MAX {
            return Ok(Looked::Oversized);
        }
        let (mut hit, mut is_unreadable): (Option<Box<Hit>>, bool) = (None, false);
        for (source, rowid) in rows {
            let Some(table) = Table::of(source, self.schema) else { continue };
            let identity = self.labels.identity(&table, rowid)?;
            let Some(found) = self.row(&table, rowid, &identity)? else {
                is_unreadable = true;
                continue;
            };
            let count: u64 = found.hits.iter().map(|hit| hit.occurrences).sum();
            if let Some(hit) = &mut hit {
                hit.occurrences += count;
            } else {
                let first = found.hits.into_iter().take(1).collect();
                let labelled = self.labels.label(table.source, &identity, &found.facts, first)?.pop();
                hit = labelled.map(|hit| Box::new(Hit { occurrences: count, ..hit }));
            }
        }
        Ok(Looked::Read { hit, is_unreadable })
    }

    /// `None` where the row cannot be decoded.
    fn row(&mut self, table: &Table, rowid: i64, identity: &Identity) -> rusqlite::Result<Option<RowHits>> {
        let blob = match self.connection.blob_open(MAIN_DB, table.name, table.column, rowid, true) {
            Ok(blob) => blob,
            // Neither text nor blob.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => return Ok(None),
            Err(error) => return Err(error),
        };
        let capacity = blob.len().clamp(512, 64 * 1024);
        let input = BufReader::with_capacity(capacity, blob);
        Ok(read_row(input, identity.shape(table.source), &mut self.text, self.with_technical).ok())
    }
}
