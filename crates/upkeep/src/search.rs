//! Search: a literal text, without regard to case, in every conversation of a database. Offline, exact and streaming (P11).
//!
//! A query is text and never syntax, and it is compared character by character under Unicode simple case folding, so scripts
//! without spaces need nothing special. What matches is the text that stored JSON stands for, never a key, an id or the letter of
//! an escape. Each field of a part or message gives at most one [`Hit`], with the first match and the number of matches.
//!
//! **Order.** Session titles, then 2.x messages, 1.x messages, 1.x parts, and last the event log; within a table in the order in
//! which rows were made (rowid), the latest first unless asked otherwise; within a row by position. The order does not depend on
//! timing, and hits arrive while the search goes on.
//!
//! **How.** Two threads with a connection each take small ranges of rows. Of each row the raw bytes are scanned for two anchor bytes
//! of the query, and only a row that can match is decoded. The scan reads the pages of the file itself where that is possible and few
//! rows match (`glance`), and else rows through SQLite; what is decoded comes from SQLite always. A row above 4 MiB is read in chunks.
//! Rows that were there when the search began are searched as they are when their turn comes; no read transaction lasts longer than
//! one range.

mod deal;
mod excerpt;
mod extract;
mod field;
mod fold;
mod glance;
mod hit;
mod label;
mod needle;
mod pattern;
mod prefilter;
mod rank;
mod reader;
mod scan;
mod shape;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use headwater_model::SessionId;

use crate::ReadDatabase;
use crate::observer::{Observer, Progress, Unit as Counted};
use crate::reading::ReadError;

pub use excerpt::{EXCERPT_CHARS_MAX, Excerpt};
pub use field::{Field, Origin};
pub use hit::{Hit, SearchTotals, Source};
pub use needle::{QUERY_CHARS_MAX, Query, QueryError};

pub(crate) use extract::{RowHits, row as read_row};
pub(crate) use label::{Identity, Labels};
pub(crate) use table::Table;
pub(crate) use text::TextSearch;

use deal::{Dealer, Rows, Unit};
use glance::Glance;
use scan::Scanner;

/// Threads, each with a connection of its own. The disk or the page cache bounds a search beyond two.
const THREADS: usize = 2;

/// Page cache of each thread's connection in KiB. A pass over all rows needs no page twice, and pages that stay in the processor's own
/// cache are copied faster: with 8 MiB the same pass takes a fifth more time.
const CACHE_KIB: i64 = 512;

/// Bytes of hits that a thread collects before it waits until they are due. A unit full of hits of a usual length stays below, so that a
/// common word keeps both threads busy; the units that may be ahead hold eight times as much.
const HITS_HELD_BYTES_MAX: usize = 1 << 20;

/// What is searched.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    /// Also tool calls (name, arguments, output, errors), diffs, and text in members that are not known.
    pub with_technical: bool,
    /// Also the copies in the event log.
    pub with_events: bool,
    /// Only these sessions; empty means all.
    pub sessions: Vec<SessionId>,
    /// At most this many hits; the first ones in order.
    pub limit: Option<u64>,
    /// Whether the oldest rows come first.
    pub oldest_first: bool,
}

/// Searches `database` for `query` and gives each hit to `sink`, which may end the search.
///
/// Memory is bounded whatever the database holds. Rows that cannot be decoded are counted and passed over.
///
/// # Errors
/// [`ReadError`] where the database cannot be read further. What was handed out before is right.
pub fn run(
    database: &ReadDatabase,
    query: &Query,
    options: &SearchOptions,
    observer: &dyn Observer,
    sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
) -> Result<SearchTotals, ReadError> {
    let tables = Table::all(database.schema(), options.with_events);
    let sessions: Vec<String> = options.sessions.iter().map(|id| id.as_str().to_owned()).collect();
    let dealer = Dealer::new(database.connection(), &tables, &sessions, !options.oldest_first)?;
    let databases = (0..THREADS).map(|_| database.another()).collect::<Result<Vec<_>, _>>()?;
    let (sender, receiver) = sync_channel(THREADS * 2);
    std::thread::scope(|scope| {
        for database in databases {
            let (sender, dealer) = (sender.clone(), &dealer);
            scope.spawn(move || {
                let worker = Worker { database: &database, dealer, query, options, observer, sender };
                worker.work();
            });
        }
        drop(sender);
        let mut merge =
            Merge { dealer: &dealer, due: 0, early: BTreeMap::new(), totals: SearchTotals::default() };
        let done = merge.run(&receiver, options.limit, observer, sink);
        // Threads that wait for a turn or for room end now.
        dealer.stop();
        drop(receiver);
        done?;
        merge.totals.is_cancelled |= observer.is_cancelled();
        Ok(merge.totals)
    })
}

/// Results of one unit, or a part of them.
struct Batch {
    unit: u64,
    hits: Vec<Hit>,
    /// What was counted in the unit, with its last batch.
    end: Option<Result<SearchTotals, rusqlite::Error>>,
}

struct Worker<'a> {
    database: &'a ReadDatabase,
    dealer: &'a Dealer,
    query: &'a Query,
    options: &'a SearchOptions,
    observer: &'a dyn Observer,
    sender: SyncSender<Batch>,
}

impl Worker<'_> {
    fn work(&self) {
        let connection = self.database.connection();
        if let Err(error) = connection.pragma_update(None, "cache_size", -CACHE_KIB) {
            return self.fail(error);
        }
        let mut scanner = Scanner::new(
            connection,
            self.database.schema(),
            self.query,
            self.options.with_technical,
            self.observer,
        );
        let mut glance = Glance::new(self.database, self.query, self.observer);
        loop {
            match self.dealer.take(connection) {
                Ok(Some(unit)) => {
                    if !self.search(&mut scanner, &mut glance, &unit) {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Reports an error that belongs to no unit.
    fn fail(&self, error: rusqlite::Error) {
        // Where nobody receives any more, the search has ended already.
        drop(self.sender.send(Batch { unit: u64::MAX, hits: Vec::new(), end: Some(Err(error)) }));
    }

    /// Searches one unit; false when nobody takes results any more.
    fn search(&self, scanner: &mut Scanner<'_>, glance: &mut Glance<'_>, unit: &Unit) -> bool {
        let mut found = Found { worker: self, unit: unit.number, hits: Vec::new(), held_bytes: 0 };
        let end = self.rows(scanner, glance, unit, &mut found).map(|()| scanner.take_totals());
        self.sender.send(Batch { unit: unit.number, hits: found.hits, end: Some(end) }).is_ok()
    }

    fn rows(
        &self,
        scanner: &mut Scanner<'_>,
        glance: &mut Glance<'_>,
        unit: &Unit,
        found: &mut Found<'_>,
    ) -> rusqlite::Result<()> {
        let (table, descending) = (&unit.table, !self.options.oldest_first);
        let connection = self.database.connection();
        let (first, last) = match &unit.rows {
            Rows::Range(first, last) => (*first, *last),
            Rows::OfSession(session) => {
                let sql = table.of_session(self.database.schema(), descending);
                let mut statement = connection.prepare_cached(&sql)?;
                return self.each(scanner, table, statement.query([session])?, found).map(drop);
            }
        };
        let mut statement = connection.prepare_cached(&table.range(descending))?;
        let Some(mut seen) = glance.at(table, first, last) else {
            return self.each(scanner, table, statement.query([first, last])?, found).map(drop);
        };
        scanner.pass_over(seen.rows, seen.bytes);
        if descending {
            seen.candidates.reverse();
        }
        for rowid in seen.candidates {
            if self.each(scanner, table, statement.query([rowid, rowid])?, found)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Looks through what a statement yields; `Break` where nothing more is wanted.
    fn each(
        &self,
        scanner: &mut Scanner<'_>,
        table: &Table,
        mut rows: rusqlite::Rows<'_>,
        found: &mut Found<'_>,
    ) -> rusqlite::Result<ControlFlow<()>> {
        while let Some(row) = rows.next()? {
            if self.observer.is_cancelled() || found.add(scanner.row(table, row)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Hits of one unit that were not handed over yet.
struct Found<'w> {
    worker: &'w Worker<'w>,
    unit: u64,
    hits: Vec<Hit>,
    held_bytes: usize,
}

impl Found<'_> {
    fn add(&mut self, mut hits: Vec<Hit>) -> ControlFlow<()> {
        self.held_bytes += hits.iter().map(Hit::bytes_held).sum::<usize>();
        self.hits.append(&mut hits);
        if self.held_bytes > HITS_HELD_BYTES_MAX {
            self.held_bytes = 0;
            // Only the unit that is due may hand over more than fits here, so memory stays bounded.
            self.worker.dealer.wait_for_turn(self.unit);
            let batch = Batch { unit: self.unit, hits: std::mem::take(&mut self.hits), end: None };
            if self.worker.sender.send(batch).is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// Puts results back in order.
struct Merge<'a> {
    dealer: &'a Dealer,
    due: u64,
    /// Batches of units that are not due.
    early: BTreeMap<u64, Vec<Batch>>,
    totals: SearchTotals,
}

impl Merge<'_> {
    fn run(
        &mut self,
        receiver: &Receiver<Batch>,
        limit: Option<u64>,
        observer: &dyn Observer,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let mut handed = 0;
        let mut hand_over = |hit: Hit, totals: &mut SearchTotals| {
            // Many hits may have been found before somebody had enough of them.
            if observer.is_cancelled() {
                totals.is_cancelled = true;
                return ControlFlow::Break(());
            }
            if limit.is_some_and(|limit| handed >= limit) {
                totals.is_limited = true;
                return ControlFlow::Break(());
            }
            handed += 1;
            let flow = sink(hit);
            totals.is_cancelled |= flow.is_break();
            flow
        };
        while let Ok(batch) = receiver.recv() {
            if observer.is_cancelled() {
                return Ok(());
            }
            if batch.unit > self.due && batch.unit != u64::MAX {
                self.early.entry(batch.unit).or_default().push(batch);
                continue;
            }
            let mut batches = vec![batch];
            while !batches.is_empty() {
                for batch in std::mem::take(&mut batches) {
                    for hit in batch.hits {
                        if hand_over(hit, &mut self.totals).is_break() {
                            return Ok(());
                        }
                    }
                    if let Some(end) = batch.end {
                        self.totals.add(end.map_err(read_error)?);
                        self.due += 1;
                        self.dealer.advance_to(self.due);
                        batches = self.early.remove(&self.due).unwrap_or_default();
                    }
                }
            }
            observer.progress(Progress {
                phase: "searching",
                done: self.totals.bytes_scanned,
                total: None,
                unit: Counted::Bytes,
            });
        }
        Ok(())
    }
}

/// What an error means here. A row is looked up again while the statement that found it is still open: one that is missing then is out of
/// its place.
fn read_error(error: rusqlite::Error) -> ReadError {
    let is_missing = matches!(error, rusqlite::Error::QueryReturnedNoRows)
        || matches!(&error, rusqlite::Error::SqliteFailure(_, Some(text)) if text.starts_with("no such rowid"));
    if is_missing { ReadError::Damaged(error) } else { error.into() }
}

impl SearchTotals {
    fn add(&mut self, other: Self) {
        self.rows_scanned += other.rows_scanned;
        self.bytes_scanned += other.bytes_scanned;
        self.rows_matched += other.rows_matched;
        self.hits += other.hits;
        self.hits_unlisted += other.hits_unlisted;
        self.rows_duplicate += other.rows_duplicate;
        self.rows_unreadable += other.rows_unreadable;
    }
}
