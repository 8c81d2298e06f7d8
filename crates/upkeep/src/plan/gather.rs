//! Gathers decisions into a plan.

use std::collections::{BTreeMap, BTreeSet};

use headwater_model::{ByteCount, SessionId};
use headwater_prune::{Class, Classes, KeptReason};

use super::judge::{Action, Sink, Taken};
use super::{ClassTotal, KEPT_MAX, Kept, Plan, Precision};

/// A [`Sink`] that builds a [`Plan`].
#[derive(Debug, Default)]
pub(crate) struct Gather {
    plan: Plan,
    /// Classes that took something from the session at hand.
    touched: Classes,
    /// Reasons for which the session at hand stays as a whole.
    reasons: BTreeSet<KeptReason>,
}

impl Gather {
    /// An empty plan that lists each of `classes`.
    pub(crate) fn new(classes: Classes) -> Self {
        let totals = classes.iter().map(|class| (class, ClassTotal::default())).collect();
        Self { plan: Plan { totals, ..Plan::default() }, ..Self::default() }
    }

    /// Counts the session at hand and turns to the next.
    pub(crate) fn next_session(&mut self) {
        for class in self.touched.iter() {
            self.plan.totals.entry(class).or_default().sessions += 1;
        }
        self.touched = Classes::NONE;
        self.reasons.clear();
    }

    pub(crate) fn finish(mut self) -> Plan {
        self.next_session();
        self.plan
    }
}

impl Sink for Gather {
    fn take(&mut self, taken: &Taken<'_>) {
        let fate = self.plan.fates.entry(taken.table).or_default();
        let sets: &mut BTreeMap<Class, _> = match taken.action {
            Action::Drop => &mut fate.dropped,
            Action::Rewrite => &mut fate.rewritten,
        };
        let mut rows: Vec<u64> = taken.rows.iter().map(|rowid| rowid.cast_unsigned()).collect();
        rows.sort_unstable();
        sets.entry(taken.class).or_default().extend(rows);
        add(self.plan.totals.entry(taken.class).or_default(), taken);
        self.touched = self.touched.with(taken.class);
    }

    fn keep(&mut self, session: &str, message: Option<&str>, reason: KeptReason) {
        if message.is_none() && !self.reasons.insert(reason) {
            return;
        }
        self.plan.kept_count += 1;
        if self.plan.kept.len() < KEPT_MAX
            && let Ok(session) = SessionId::new(session)
        {
            self.plan.kept.push(Kept { session, message: message.map(Into::into), reason });
        }
    }
}

/// Adds what was taken to the total of its class.
pub(crate) fn add(total: &mut ClassTotal, taken: &Taken<'_>) {
    let rows = taken.rows.len() as u64;
    match taken.action {
        Action::Drop => total.rows_dropped += rows,
        Action::Rewrite => total.rows_rewritten += rows,
    }
    total.bytes += ByteCount::new(taken.bytes);
    if !taken.is_exact {
        total.precision = Precision::UpperBound;
    }
}
