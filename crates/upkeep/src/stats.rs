//! Where the space of a database goes, and what each class would free (P14).
//!
//! One pass over small columns and the beginnings of rows, on two connections where the machine has two processors; payloads are read only
//! where [`StatsOptions::exact`] says so. No row of many megabytes costs more than a small one. Nothing is written, no checkpoint is run, and
//! no read transaction stays open longer than some ten thousand rows take.

use std::sync::atomic::{AtomicUsize, Ordering};

use headwater_model::UnixMillis;
use headwater_prune::decide::Limits;
use headwater_prune::{Class, Classes};

use crate::observer::{Observer, Progress, Unit};
use crate::open::ReadDatabase;
use crate::plan::judge::{Judge, Rules};
use crate::plan::scope::{self, Scope};
use crate::plan::whole::WholeSessions;
use crate::plan::{Figures, PlanError, PlanErrorKind, Selection, ensure_plannable};
use crate::survey::content::Names;
use crate::survey::facts::Depth;
use crate::survey::roster::Roster;
use crate::survey::walker::{Look, Surveyed, Walker};

mod assemble;
mod folders;
mod pages;
mod report;
mod tables;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use pages::page_bytes;
pub use report::{
    Age, AgeFigures, ClassFigures, DatabaseFigures, FolderFigures, Group, HeldBy, IndexFigures, LargeRow,
    LogFigures, LogState, ProjectFigures, Recoverable, SessionBytes, SessionCount, SessionFigures,
    StatsReport, TableFigures,
};
use tally::Tally;

/// What a caller wants to know.
#[derive(Clone, Copy, Debug)]
pub struct StatsOptions {
    /// The caller's clock.
    pub now: UnixMillis,
    /// Most sessions listed.
    pub sessions_max: usize,
    /// Most rows listed.
    pub largest_max: usize,
    /// Whether payloads may be read, which makes every figure exact but those of rows above 16 MiB.
    pub exact: bool,
}

impl StatsOptions {
    /// The usual lists of 20 sessions and 10 rows at the instant `now`, without reading payloads.
    pub const fn new(now: UnixMillis) -> Self {
        Self { now, sessions_max: 20, largest_max: 10, exact: false }
    }
}

/// Computes the report. Memory holds the rows of one session per connection and some 300 bytes per session.
///
/// # Errors
/// [`PlanError`] where the caller cancels or the database cannot be read.
pub fn compute(
    database: &ReadDatabase,
    options: &StatsOptions,
    observer: &dyn Observer,
) -> Result<StatsReport, PlanError> {
    let db = database.connection();
    let schema = database.schema();
    ensure_plannable(db, schema)?;
    let roster = Roster::read(db, schema)?;
    let forest = roster.forest();
    let leftover =
        scope::resolve(&roster, &forest, &selection(options, Classes::NONE.with(Class::Leftover)))?;
    let walk = Walk { roster: &roster, leftover: &leftover, options, observer, next: AtomicUsize::new(0) };
    let Walked { tally, names, indexes } = walk.run(database)?;
    assemble::Assembly { database, options, roster: &roster, forest: &forest, tally, names, indexes }.report()
}

fn selection(options: &StatsOptions, classes: Classes) -> Selection {
    Selection {
        figures: if options.exact { Figures::Exact } else { Figures::Near },
        ..Selection::new(classes, options.now)
    }
}

/// The classes whose totals come from the rows of one session.
fn judged_classes() -> Classes {
    Class::ALL.into_iter().filter(|class| !matches!(class, Class::Leftover | Class::Sessions)).collect()
}

/// What a walk has seen.
struct Walked {
    tally: Tally,
    names: Names,
    /// The pages of indexes, where a second connection had the time for them.
    indexes: Option<Vec<IndexFigures>>,
}

/// A walk that several connections share: each takes the next session that none has taken.
struct Walk<'a> {
    roster: &'a Roster,
    leftover: &'a Scope,
    options: &'a StatsOptions,
    observer: &'a dyn Observer,
    next: AtomicUsize,
}

impl Walk<'_> {
    fn run(&self, database: &ReadDatabase) -> Result<Walked, PlanError> {
        let second = if self.uses_two_connections() { Some(database.another()?) } else { None };
        std::thread::scope(|threads| {
            let other = second.map(|second| threads.spawn(move || self.share_after_indexes(&second)));
            let own = self.share(database);
            let joined = other.map(|other| match other.join() {
                Ok(share) => share,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let (mut tally, mut names) = own?;
            let mut indexes = None;
            if let Some(joined) = joined {
                let (found, theirs, their_names) = joined?;
                tally.merge(&mut names, theirs, &their_names);
                indexes = Some(found);
            }
            Ok(Walked { tally, names, indexes })
        })
    }

    /// Exact figures may hold a row of 16 MiB and its rewritten copy: one connection then, for the memory bound.
    fn uses_two_connections(&self) -> bool {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        processors > 1 && self.roster.sessions.len() > 1 && !self.options.exact
    }

    /// Measures indexes, which the report would wait for, then takes its share: whoever is free takes the next session.
    fn share_after_indexes(
        &self,
        database: &ReadDatabase,
    ) -> Result<(Vec<IndexFigures>, Tally, Names), PlanError> {
        let indexes = pages::indexes(database.connection())?;
        let (tally, names) = self.share(database)?;
        Ok((indexes, tally, names))
    }

    /// Walks over the sessions that nobody else takes.
    fn share(&self, database: &ReadDatabase) -> Result<(Tally, Names), PlanError> {
        let (db, schema) = (database.connection(), database.schema());
        let depth = if self.options.exact { Depth::Exact } else { Depth::Prefix };
        let mut walker =
            Walker::new(db, schema, Look { content: true, events: true, superseded: true, depth })?;
        let mut whole = WholeSessions::new(db, schema)?;
        let mut judge =
            Judge::new(Rules { classes: judged_classes(), limits: Limits::default(), together: false });
        let mut surveyed = Surveyed::default();
        let mut tally = Tally::new(self.options.largest_max);
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(session) = self.roster.sessions.get(at) else { break };
            if self.observer.is_cancelled() {
                return Err(PlanErrorKind::Cancelled.into());
            }
            walker.read(session, &mut surveyed, |row| tally.event(at, row))?;
            tally.session(at, session.exists(), &surveyed);
            judge.session(session, &surveyed, &mut tally.classes);
            if let Some(class) = self.leftover.whole[at] {
                whole.take(&session.id, class, &mut tally.classes)?;
            }
            tally.classes.next_session();
            let (done, total) = (at as u64 + 1, Some(self.roster.sessions.len() as u64));
            self.observer.progress(Progress { phase: "reading sessions", done, total, unit: Unit::Sessions });
        }
        walker.end_slice()?;
        Ok((tally, walker.take_names()))
    }
}
