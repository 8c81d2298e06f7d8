//! Applying a plan to a database in use: session by session, in short transactions (P13).
//!
//! Every session is judged again with the rules that made the plan, just before its rows are touched, and what goes is what both the
//! plan and the new judgement hold. Under the lock the fence and the exact rows are compared once more.

use headwater_model::SessionId;
use headwater_prune::{Class, KeptReason};

use super::answer::{PruneError, PruneErrorKind, Why};
use super::pruner::Pruner;
use super::report::{PruneReport, Space, Stopped};
use super::work::{Seen, Within, Work};
use crate::fence::{SessionPlace, Storage};
use crate::observer::{Progress, Unit};
use crate::plan::judge::Judge;
use crate::plan::scope::{self, Scope};
use crate::plan::{self, Kept, Plan, Selection};
use crate::state::{RunEnd, RunKind};
use crate::survey::roster::Roster;
use crate::survey::walker::{Surveyed, Walker};

const EVENT_CLASSES: [Class; 2] = [Class::SupersededEvents, Class::Events];
const CONTENT_CLASSES: [Class; 5] =
    [Class::Technical, Class::Diffs, Class::Metadata, Class::Attachments, Class::Compacted];
const WHOLE_CLASSES: [Class; 2] = [Class::Leftover, Class::Sessions];

/// What a pass over the sessions shares.
pub(super) struct Pass<'p> {
    pub(super) plan: &'p Plan,
    pub(super) selection: &'p Selection,
    pub(super) roster: Roster,
    pub(super) scope: Scope,
    pub(super) report: &'p mut PruneReport,
    pub(super) seen: &'p mut Seen,
}

/// Why a pass ended before its end.
pub(super) enum Halt {
    Cancelled,
    Blocked(Why),
    Failed(PruneError),
}

impl<K: Into<PruneErrorKind>> From<K> for Halt {
    fn from(kind: K) -> Self {
        PruneError::from(kind).into()
    }
}

impl From<PruneError> for Halt {
    fn from(error: PruneError) -> Self {
        match error.kind.blocked() {
            Some(why) => Self::Blocked(why),
            None => Self::Failed(error),
        }
    }
}

impl Pruner<'_> {
    /// Removes what `plan` holds, as far as it is still so. `selection` is the one that the plan was computed with.
    ///
    /// The report says what was done, also where the operation ended early; the error beside it says why it failed. What is committed
    /// stays committed, and the same prune again does the rest.
    pub fn apply(&mut self, plan: &Plan, selection: &Selection) -> (PruneReport, Result<(), PruneError>) {
        self.apply_as(RunKind::Prune, plan, selection)
    }

    pub(crate) fn apply_as(
        &mut self,
        kind: RunKind,
        plan: &Plan,
        selection: &Selection,
    ) -> (PruneReport, Result<(), PruneError>) {
        let mut report = PruneReport::default();
        let outcome = self.recorded(kind, plan, selection, &mut report);
        if outcome.is_err() {
            report.stopped = Some(Stopped::Failed);
        }
        (report, outcome)
    }

    /// The run is on record before anything is removed, and how it ended after.
    fn recorded(
        &mut self,
        kind: RunKind,
        plan: &Plan,
        selection: &Selection,
        report: &mut PruneReport,
    ) -> Result<(), PruneError> {
        let run = self.state.begin_run(self.key, kind, self.fence.clock().now())?;
        let outcome = self.measured(plan, selection, report);
        let end = match (&outcome, report.stopped) {
            (Ok(()), None) => RunEnd::Done,
            _ => RunEnd::Stopped,
        };
        let json = serde_json::to_string(&report).unwrap_or_default();
        self.state.end_run(run, end, &json, self.fence.clock().now())?;
        outcome
    }

    fn measured(
        &mut self,
        plan: &Plan,
        selection: &Selection,
        report: &mut PruneReport,
    ) -> Result<(), PruneError> {
        let connection = self.database.connection();
        let file = self.database.file();
        report.space = Space::before(connection, file.path())?;
        let outcome = self.passes(plan, selection, report);
        self.locks.make_durable()?;
        self.locks.settle();
        report.space.after(connection, file.path(), &file.beside("-wal"))?;
        report.locks = self.locks.report();
        match outcome {
            Ok(()) => {}
            Err(Halt::Cancelled) => report.stopped = Some(Stopped::Cancelled),
            Err(Halt::Blocked(why)) => report.stopped = Some(Stopped::Blocked(why)),
            Err(Halt::Failed(error)) => return Err(error),
        }
        Ok(())
    }

    fn passes(&mut self, plan: &Plan, selection: &Selection, report: &mut PruneReport) -> Result<(), Halt> {
        let mut seen = Seen::default();
        let has_any = |classes: &[Class]| classes.iter().any(|class| selection.classes.has(*class));
        let mut outcome = Ok(());
        // Events first: a 2.x session with retained event rows is closed to everything else (P8).
        if has_any(&EVENT_CLASSES) {
            outcome = self.pass(plan, selection, &mut *report, &mut seen, Self::event_pass);
        }
        if outcome.is_ok() && has_any(&CONTENT_CLASSES) {
            outcome = self.pass(plan, selection, &mut *report, &mut seen, Self::content_pass);
        }
        if outcome.is_ok() && has_any(&WHOLE_CLASSES) {
            outcome = self.pass(plan, selection, &mut *report, &mut seen, Self::whole_pass);
        }
        if outcome.is_ok() {
            self.count_rows_left(plan, &seen, report)?;
        }
        outcome
    }

    fn pass(
        &mut self,
        plan: &Plan,
        selection: &Selection,
        report: &mut PruneReport,
        seen: &mut Seen,
        run: fn(&mut Self, &mut Pass<'_>) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let connection = self.database.connection();
        let snapshot = connection.unchecked_transaction()?;
        let roster = Roster::read(&snapshot, self.fence.schema())?;
        drop(snapshot);
        let scope = scope::resolve(&roster, &roster.forest(), selection).map_err(PruneErrorKind::Plan)?;
        for (at, reason) in &scope.kept {
            if let Ok(session) = SessionId::new(&*roster.sessions[*at].id) {
                report.keep(plan, Kept { session, message: None, reason: *reason });
            }
        }
        run(self, &mut Pass { plan, selection, roster, scope, report, seen })
    }

    /// Judges the covered sessions one after another and hands what is left of the plan to `apply`.
    pub(super) fn each_session(
        &mut self,
        pass: &mut Pass<'_>,
        classes: &[Class],
        mut apply: impl FnMut(&mut Self, &mut Pass<'_>, &SessionId, &mut Work) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let chosen: headwater_prune::Classes =
            classes.iter().copied().filter(|class| pass.selection.classes.has(*class)).collect();
        let selection = Selection { classes: chosen, ..pass.selection.clone() };
        let schema = self.fence.schema().clone();
        let connection = self.database.connection();
        let mut walker = Walker::new(connection, &schema, plan::look(&selection))?;
        let mut judge = Judge::new(plan::rules(&selection));
        let (mut surveyed, mut work) = (Surveyed::default(), Work::default());
        let sessions = std::mem::take(&mut pass.roster.sessions);
        let total = sessions.len() as u64;
        for (at, session) in sessions.iter().enumerate() {
            if self.observer.is_cancelled() {
                return Err(Halt::Cancelled);
            }
            if !pass.scope.covered[at] {
                continue;
            }
            let Ok(id) = SessionId::new(&*session.id) else { continue };
            work.clear();
            walker.read(session, &mut surveyed, |_| {})?;
            walker.end_slice()?;
            judge.session(
                session,
                &surveyed,
                &mut Within { plan: pass.plan, work: &mut work, seen: pass.seen },
            );
            for (message, reason) in work.kept.drain(..) {
                pass.report.keep(pass.plan, Kept { session: id.clone(), message, reason });
            }
            apply(self, pass, &id, &mut work)?;
            let progress =
                Progress { phase: "pruning", done: at as u64 + 1, total: Some(total), unit: Unit::Sessions };
            self.observer.progress(progress);
        }
        Ok(())
    }

    fn content_pass(&mut self, pass: &mut Pass<'_>) -> Result<(), Halt> {
        self.each_session(pass, &CONTENT_CLASSES, |pruner, pass, session, work| {
            pruner.technical(pass, session, work)?;
            pruner.fields(pass, session, work)
        })
    }

    /// The place of a session for rows of `table`; `None` where the session is gone.
    pub(super) fn place(
        &self,
        session: &SessionId,
        table: &'static str,
    ) -> rusqlite::Result<Option<SessionPlace>> {
        let connection = self.database.connection();
        let find = |storage| SessionPlace::find(connection, self.fence.schema(), storage, session);
        match table {
            "message" | "part" => find(Storage::V1),
            // Events of a session that 2.x has taken over are its own.
            "event" => match find(Storage::V2)? {
                Some(place) => Ok(Some(place)),
                None => find(Storage::V1),
            },
            _ => match find(Storage::V2)? {
                Some(place) => Ok(Some(place)),
                None => find(Storage::V2OnV1Session),
            },
        }
    }

    /// Goes on to ask once more after answers that were too old, as long as that makes sense.
    pub(super) fn patience(&mut self, is_stale: bool) -> Result<(), Halt> {
        if !is_stale {
            self.patience.restore();
        } else if !self.patience.may_ask_again() {
            return Err(Halt::Blocked(Why::AskedTooLongAgo));
        }
        Ok(())
    }

    pub(super) fn keep_session(pass: &mut Pass<'_>, session: &SessionId, reason: KeptReason) {
        pass.report.keep(pass.plan, Kept { session: session.clone(), message: None, reason });
    }

    /// Planned rows that no pass met: somebody removed or changed them, or their session is out of reach now.
    fn count_rows_left(&self, plan: &Plan, seen: &Seen, report: &mut PruneReport) -> Result<(), PruneError> {
        let connection = self.database.connection();
        for (table, fate) in &plan.fates {
            let mut exists = connection
                .prepare(&format!("SELECT 1 FROM {} WHERE rowid = ?1", plan::whole::quoted(table)))?;
            for (class, rows) in fate.dropped.iter().chain(&fate.rewritten) {
                let mut left = report.rows_left.get(class).copied().unwrap_or_default();
                for row in rows.iter().filter(|row| !seen.has(table, *class, *row)) {
                    if exists.exists([row.cast_signed()])? { left.changed += 1 } else { left.gone += 1 }
                }
                if left != super::report::RowsLeft::default() {
                    report.rows_left.insert(*class, left);
                }
            }
        }
        Ok(())
    }
}
