//! Looks through stored rows: prefilter on the raw bytes, and only what may match is decoded.

use std::io::{self, BufReader, Read};

use rusqlite::blob::Blob;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB, Row};

use crate::observer::Observer;
use crate::schema::Schema;
use crate::survey::byte_length;

use super::extract::{self, RowHits};
use super::field::{Field, Origin};
use super::hit::{Hit, SearchTotals, Source};
use super::label::{CHUNK_BYTES, Identity, Labels};
use super::needle::Query;
use super::reader::ReadError;
use super::reader::Sink;
use super::table::Table;
use super::text::TextSearch;

/// Bytes that are looked at in one go where a row is not whole in memory: what stays in the processor's own cache.
const LOOK_BYTES: usize = 64 << 10;

/// Searches rows on one connection.
pub(crate) struct Scanner<'a> {
    connection: &'a Connection,
    schema: &'a Schema,
    query: &'a Query,
    with_technical: bool,
    observer: &'a dyn Observer,
    labels: Labels<'a>,
    text: TextSearch<'a>,
    totals: SearchTotals,
}

/// What became of one row.
enum Looked {
    Nothing,
    Found(RowHits),
    Unreadable,
}

impl<'a> Scanner<'a> {
    /// Searches for `query` on `connection`.
    pub(crate) fn new(
        connection: &'a Connection,
        schema: &'a Schema,
        query: &'a Query,
        with_technical: bool,
        observer: &'a dyn Observer,
    ) -> Self {
        Self {
            connection,
            schema,
            query,
            with_technical,
            observer,
            labels: Labels::new(connection, schema),
            text: TextSearch::new(query),
            totals: SearchTotals::default(),
        }
    }

    /// What was counted since the last call.
    pub(crate) fn take_totals(&mut self) -> SearchTotals {
        std::mem::take(&mut self.totals)
    }

    /// Searches one row of a statement of [`Table`]: rowid, text.
    pub(crate) fn row(&mut self, table: &Table, row: &Row<'_>) -> rusqlite::Result<Vec<Hit>> {
        let rowid = row.get(0)?;
        let text = row.get_ref(1)?;
        let bytes = match text {
            ValueRef::Text(data) | ValueRef::Blob(data) => data.len() as u64,
            // No text, or more than is read at once.
            ValueRef::Null => self.bytes(table, rowid)?,
            ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        };
        self.totals.rows_scanned += 1;
        self.totals.bytes_scanned += bytes;
        if table.source == Source::Session {
            return self.title(table, rowid, bytes, text);
        }
        let looked = match text {
            ValueRef::Text(data) | ValueRef::Blob(data) => self.whole(table, rowid, data)?,
            ValueRef::Null if bytes > 0 => self.huge(table, rowid)?,
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => (None, Looked::Unreadable),
        };
        match looked {
            (_, Looked::Nothing) => Ok(Vec::new()),
            (_, Looked::Unreadable) => {
                self.totals.rows_unreadable += 1;
                Ok(Vec::new())
            }
            (identity, Looked::Found(found)) => self.label(table, rowid, identity, found),
        }
    }

    /// Counts rows that were looked at elsewhere and hold nothing.
    pub(super) fn pass_over(&mut self, rows: u64, bytes: u64) {
        self.totals.rows_scanned += rows;
        self.totals.bytes_scanned += bytes;
    }

    fn bytes(&self, table: &Table, rowid: i64) -> rusqlite::Result<u64> {
        let mut statement = self.connection.prepare_cached(&table.bytes())?;
        statement.query_row([rowid], |row| byte_length(row, 0))
    }

    fn whole(
        &mut self,
        table: &Table,
        rowid: i64,
        data: &[u8],
    ) -> rusqlite::Result<(Option<Identity>, Looked)> {
        if self.query.json().first_candidate(data, 0).is_none() {
            return Ok((None, Looked::Nothing));
        }
        let identity = self.labels.identity(table, rowid)?;
        let read = extract::row(data, identity.shape(table.source), &mut self.text, self.with_technical);
        Ok((Some(identity), self.judge(read)))
    }

    /// A row that is not read whole: twice through it in chunks, the second time only where something may be. What is stored is UTF-8, or
    /// the database would not have been opened.
    fn huge(&mut self, table: &Table, rowid: i64) -> rusqlite::Result<(Option<Identity>, Looked)> {
        let open = || self.connection.blob_open(MAIN_DB, table.name, table.column, rowid, true);
        let mut blob = open()?;
        let mut buffer = Vec::new();
        match may_match(self.query, &mut blob, &mut buffer, self.observer) {
            Ok(true) => {}
            Ok(false) => return Ok((None, Looked::Nothing)),
            Err(_) => return Ok((None, Looked::Unreadable)),
        }
        let identity = self.labels.identity(table, rowid)?;
        let input = BufReader::with_capacity(CHUNK_BYTES, Watched { blob: open()?, observer: self.observer });
        let read = extract::row(input, identity.shape(table.source), &mut self.text, self.with_technical);
        Ok((Some(identity), self.judge(read)))
    }

    fn judge(&self, read: Result<RowHits, ReadError>) -> Looked {
        match read {
            Ok(found) if found.hits.is_empty() && found.unlisted == 0 => Looked::Nothing,
            Ok(found) => Looked::Found(found),
            // The reader was stopped; nothing is wrong with the row.
            Err(_) if self.observer.is_cancelled() => Looked::Nothing,
            Err(_) => Looked::Unreadable,
        }
    }

    fn title(
        &mut self,
        table: &Table,
        rowid: i64,
        stored_bytes: u64,
        title: ValueRef<'_>,
    ) -> rusqlite::Result<Vec<Hit>> {
        let Ok(Some(bytes)) = title.as_bytes_or_null() else {
            // No title is nothing to find; one of many mebibytes is not a title.
            self.totals.rows_unreadable += u64::from(stored_bytes > 0);
            return Ok(Vec::new());
        };
        self.text.clear();
        self.text.piece(bytes);
        let Some(found) = self.text.finish() else { return Ok(Vec::new()) };
        let identity = self.labels.identity(table, rowid)?;
        // A migrated session has two rows; the 2.x one stands for it.
        if table.name == "session" && self.schema.has("session_v2", "id") {
            let sql = "SELECT EXISTS (SELECT 1 FROM session_v2 WHERE id = ?1)";
            if self.connection.prepare_cached(sql)?.query_row([&identity.id], |row| row.get(0))? {
                return Ok(Vec::new());
            }
        }
        let hit = extract::FieldHit {
            field: Field::Title,
            item: None,
            tool: None,
            excerpt: found.excerpt,
            occurrences: found.occurrences,
        };
        let found = RowHits { hits: vec![hit], ..RowHits::default() };
        self.label(table, rowid, Some(identity), found)
    }

    fn label(
        &mut self,
        table: &Table,
        rowid: i64,
        identity: Option<Identity>,
        mut found: RowHits,
    ) -> rusqlite::Result<Vec<Hit>> {
        let identity = match identity {
            Some(identity) => identity,
            None => self.labels.identity(table, rowid)?,
        };
        if matches!(table.source, Source::Message | Source::Part) {
            self.labels.drop_migrated(&identity, &mut self.text, self.with_technical, &mut found)?;
            if found.hits.is_empty() {
                self.totals.rows_duplicate += 1;
                return Ok(Vec::new());
            }
        }
        self.totals.rows_matched += 1;
        self.totals.hits += found.hits.len() as u64 + found.unlisted;
        self.totals.hits_unlisted += found.unlisted;
        let mut hits = self.labels.label(table.source, &identity, &found.facts, found.hits)?;
        for hit in &mut hits {
            // System and synthetic text of 2.x stands in the same member as a user's.
            if hit.field == Field::Text && hit.origin == Origin::System {
                hit.field = Field::System;
            }
        }
        Ok(hits)
    }
}

/// Whether `query` may be in `text`, which is read in chunks into `buffer`. False where the caller wants to stop.
pub(super) fn may_match(
    query: &Query,
    text: &mut impl Read,
    buffer: &mut Vec<u8>,
    observer: &dyn Observer,
) -> io::Result<bool> {
    let pattern = query.json();
    buffer.resize(LOOK_BYTES + pattern.overlap(), 0);
    let mut held = 0;
    loop {
        let read = text.read(&mut buffer[held..])?;
        if read == 0 || observer.is_cancelled() {
            return Ok(false);
        }
        let end = held + read;
        if pattern.first_candidate(&buffer[..end], 0).is_some() {
            return Ok(true);
        }
        held = end.min(pattern.overlap());
        buffer.copy_within(end - held..end, 0);
    }
}

/// Ends a long read when the caller wants to stop.
struct Watched<'a> {
    blob: Blob<'a>,
    observer: &'a dyn Observer,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.observer.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.blob.read(buffer)
    }
}
