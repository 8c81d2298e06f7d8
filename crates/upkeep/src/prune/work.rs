//! What a plan still holds of one session when it is applied.

use std::collections::BTreeMap;

use headwater_prune::{Class, Classes, KeptReason};

use crate::plan::judge::{Action, Sink, Taken};
use crate::plan::{Plan, RowIds};

/// The rows of one session that were planned and that the same rules still take: never more than was planned.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Event rows, by class.
    pub(super) events: Vec<(Class, i64)>,
    /// Rows of `part` that class technical drops.
    pub(super) parts: Vec<i64>,
    /// Rows of `session_message` that lose items by class technical.
    pub(super) rows: Vec<i64>,
    /// Rows whose fields are rewritten, by table and rowid.
    pub(super) fields: BTreeMap<(&'static str, i64), Classes>,
    /// What stays, by message where only one does.
    pub(super) kept: Vec<(Option<String>, KeptReason)>,
}

impl Work {
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.parts.clear();
        self.rows.clear();
        self.fields.clear();
        self.kept.clear();
    }
}

/// Takes what a judge decides, as far as the plan has it.
pub(super) struct Within<'w> {
    pub(super) plan: &'w Plan,
    pub(super) work: &'w mut Work,
    pub(super) seen: &'w mut Seen,
}

impl Sink for Within<'_> {
    fn take(&mut self, taken: &Taken<'_>) {
        let Some(planned) = planned(self.plan, taken.table, taken.action, taken.class) else { return };
        let rows = taken.rows.iter().copied().filter(|row| planned.contains(row.cast_unsigned()));
        for row in rows {
            self.seen.add(taken.table, taken.class, row);
            match (taken.class, taken.table, taken.action) {
                (Class::Events | Class::SupersededEvents, ..) => self.work.events.push((taken.class, row)),
                (Class::Technical, "part", Action::Drop) => self.work.parts.push(row),
                (Class::Technical, _, Action::Rewrite) => self.work.rows.push(row),
                (class, table, Action::Rewrite) => {
                    let classes = self.work.fields.entry((table, row)).or_default();
                    *classes = classes.with(class);
                }
                (_, _, Action::Drop) => {}
            }
        }
    }

    fn keep(&mut self, _session: &str, message: Option<&str>, reason: KeptReason) {
        self.work.kept.push((message.map(str::to_owned), reason));
    }
}

pub(super) fn planned<'p>(plan: &'p Plan, table: &str, action: Action, class: Class) -> Option<&'p RowIds> {
    let fate = plan.fates.get(table)?;
    match action {
        Action::Drop => fate.dropped.get(&class),
        Action::Rewrite => fate.rewritten.get(&class),
    }
}

/// The planned rows that were met while the plan was applied.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<(&'static str, Class), RowIds>);

impl Seen {
    pub(super) fn add(&mut self, table: &'static str, class: Class, row: i64) {
        self.0.entry((table, class)).or_default().insert(row.cast_unsigned());
    }

    pub(super) fn has(&self, table: &'static str, class: Class, row: u64) -> bool {
        self.0.get(&(table, class)).is_some_and(|rows| rows.contains(row))
    }
}
