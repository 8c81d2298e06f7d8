//! Deals the rows out to threads in small units and keeps their results in order.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use super::table::Table;

/// Rowids in one unit. Some mebibytes of a usual database: small enough for a steady stream, large enough that asking costs nothing.
const UNIT_ROWIDS: i64 = 512;

/// Units that may be ahead of the one whose results are due.
const UNITS_AHEAD_MAX: u64 = 8;

/// Rows that one thread searches in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Position in the order of results, from 0 without gaps.
    pub(crate) number: u64,
    /// Which table.
    pub(crate) table: Table,
    /// Which rows of it.
    pub(crate) rows: Rows,
}

/// Rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Rowids, both inclusive.
    Range(i64, i64),
    /// All rows of one session.
    OfSession(String),
}

/// One table with the rowids that are still to be dealt.
struct Stretch {
    table: Table,
    first: i64,
    last: i64,
}

struct State {
    stretches: std::vec::IntoIter<Stretch>,
    current: Option<Stretch>,
    sessions: std::vec::IntoIter<(Table, String)>,
    next: u64,
    due: u64,
    is_stopped: bool,
}

/// Deals units to the threads of one search.
pub(crate) struct Dealer {
    descending: bool,
    state: Mutex<State>,
    moved: Condvar,
}

impl Dealer {
    /// Deals all rows of `tables` that exist now, or those of `sessions` where it names some.
    pub(crate) fn new(
        connection: &Connection,
        tables: &[Table],
        sessions: &[String],
        descending: bool,
    ) -> rusqlite::Result<Self> {
        let mut stretches = Vec::new();
        if sessions.is_empty() {
            for &table in tables {
                let horizon: Option<i64> = connection
                    .prepare(&table.next_rowid(true))?
                    .query_row([i64::MIN, i64::MAX], |row| row.get(0))
                    .optional()?;
                stretches.extend(horizon.map(|last| Stretch { table, first: i64::MIN, last }));
            }
        }
        let pairs: Vec<(Table, String)> =
            sessions.iter().flat_map(|id| tables.iter().map(move |table| (*table, id.clone()))).collect();
        let mut stretches = stretches.into_iter();
        let state = State {
            current: stretches.next(),
            stretches,
            sessions: pairs.into_iter(),
            next: 0,
            due: 0,
            is_stopped: false,
        };
        Ok(Self { descending, state: Mutex::new(state), moved: Condvar::new() })
    }

    /// The next unit; waits while too many are ahead. `None` at the end, or when the search was stopped.
    pub(crate) fn take(&self, connection: &Connection) -> rusqlite::Result<Option<Unit>> {
        let mut state = self.lock();
        while !state.is_stopped && state.next >= state.due + UNITS_AHEAD_MAX {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_stopped {
            return Ok(None);
        }
        let dealt = match state.sessions.next() {
            Some((table, session)) => Some((table, Rows::OfSession(session))),
            None => self.next_range(&mut state, connection)?,
        };
        let Some((table, rows)) = dealt else { return Ok(None) };
        let number = state.next;
        state.next += 1;
        Ok(Some(Unit { number, table, rows }))
    }

    /// Skips what is not there: rowids may have gaps of any size.
    fn next_range(
        &self,
        state: &mut State,
        connection: &Connection,
    ) -> rusqlite::Result<Option<(Table, Rows)>> {
        while let Some(stretch) = &mut state.current {
            let found: Option<i64> = connection
                .prepare_cached(&stretch.table.next_rowid(self.descending))?
                .query_row(params![stretch.first, stretch.last], |row| row.get(0))
                .optional()?;
            let Some(start) = found else {
                state.current = state.stretches.next();
                continue;
            };
            let table = stretch.table;
            let (first, last) = if self.descending {
                (start.saturating_sub(UNIT_ROWIDS - 1).max(stretch.first), start)
            } else {
                (start, start.saturating_add(UNIT_ROWIDS - 1).min(stretch.last))
            };
            let is_rest_empty = if self.descending { first == stretch.first } else { last == stretch.last };
            if is_rest_empty {
                state.current = state.stretches.next();
            } else if self.descending {
                stretch.last = first - 1;
            } else {
                stretch.first = last + 1;
            }
            return Ok(Some((table, Rows::Range(first, last))));
        }
        Ok(None)
    }

    /// Waits until the results of unit `number` are due, or the search was stopped.
    pub(crate) fn wait_for_turn(&self, number: u64) {
        let mut state = self.lock();
        while !state.is_stopped && state.due < number {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The results of every unit before `number` have been handed out.
    pub(crate) fn advance_to(&self, number: u64) {
        self.lock().due = number;
        self.moved.notify_all();
    }

    /// No further unit is needed.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
