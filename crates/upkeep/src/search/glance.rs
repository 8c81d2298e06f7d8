//! The first look at a range of rows: which of them may match, from the pages of the file.
//!
//! Most searches look for what is rare. Then nearly all of the work is to bring bytes from the file to the prefilter, and SQLite does that
//! page by page. Rows that may match are read again through SQLite, and so is every range that is not as expected.

use crate::ReadDatabase;
use crate::observer::Observer;
use crate::pages::{Column, PageRow, Stored, TablePages};

use super::hit::Source;
use super::needle::Query;
use super::scan::may_match;
use super::table::Table;

/// After a range of which more than one row in this many may match, reading twice costs more than it saves.
const ROWS_PER_CANDIDATE_MIN: u64 = 8;

/// Ranges that are left to SQLite after one that did not pay.
const PAUSE_RANGES: u32 = 15;

/// Looks at ranges of rows for one thread.
pub(super) struct Glance<'a> {
    database: &'a ReadDatabase,
    query: &'a Query,
    observer: &'a dyn Observer,
    pages: Option<TablePages<'a>>,
    buffer: Vec<u8>,
    /// Ranges that are still left to SQLite.
    pause: u32,
}

/// What a range holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// Rows that may match, or that only SQLite can read; ascending.
    pub(super) candidates: Vec<i64>,
    /// All others, and the bytes of their text.
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl<'a> Glance<'a> {
    pub(super) fn new(database: &'a ReadDatabase, query: &'a Query, observer: &'a dyn Observer) -> Self {
        let pages = TablePages::of(database);
        Self { database, query, observer, pages, buffer: Vec::new(), pause: 0 }
    }

    /// The rows of `table` from `first` to `last`; `None` where SQLite shall read them all.
    pub(super) fn at(&mut self, table: &Table, first: i64, last: i64) -> Option<Glimpse> {
        // Titles are few, and matched as plain text.
        if table.source == Source::Session {
            return None;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let pages = self.pages.as_mut()?;
        let column = Column { table: table.name, name: table.column };
        let (query, observer, buffer) = (self.query, self.observer, &mut self.buffer);
        let mut glimpse = Glimpse::default();
        let mut each = |row: PageRow<'_, '_>| {
            let (bytes, may_match) = match row.stored {
                Stored::Here(text) => (text.len() as u64, query.json().first_candidate(text, 0).is_some()),
                Stored::Elsewhere(bytes, mut text) => {
                    (bytes, may_match(query, &mut text, buffer, observer).unwrap_or(true))
                }
                Stored::Other => (0, true),
            };
            if may_match {
                glimpse.candidates.push(row.rowid);
            } else {
                glimpse.rows += 1;
                glimpse.bytes += bytes;
            }
            !observer.is_cancelled()
        };
        let transaction = self.database.connection().unchecked_transaction().ok()?;
        let looked = pages.rows(column, (first, last), &mut each);
        transaction.finish().ok()?;
        let is_worth_it = glimpse.candidates.len() as u64 * ROWS_PER_CANDIDATE_MIN <= glimpse.rows;
        if looked.is_err() || !is_worth_it {
            self.pause = PAUSE_RANGES;
        }
        looked.is_ok().then_some(glimpse)
    }
}
