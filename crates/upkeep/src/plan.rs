//! What a prune or a rebuild is about to do: computed from a read-only pass, shown, then applied.

use std::collections::BTreeMap;

use headwater_model::{ByteCount, ProjectId, SessionId, UnixMillis};
use headwater_prune::decide::Limits;
use headwater_prune::{Class, Classes};
use roaring::RoaringTreemap;
use rusqlite::Connection;
use serde::Serialize;

use crate::observer::{Observer, Progress, Unit};
use crate::schema::Schema;
use crate::survey::facts::Depth;
use crate::survey::roster::{Roster, SESSION_COLUMNS};
use crate::survey::walker::{Look, Surveyed, Walker};

mod error;
pub(crate) mod gather;
pub(crate) mod judge;
pub(crate) mod scope;
pub(crate) mod whole;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

pub use error::{PlanError, PlanErrorKind};

/// What a caller wants removed.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each named on the command line")]
pub struct Selection {
    /// Which classes (P15).
    pub classes: Classes,
    /// Only these sessions; empty means every session.
    pub sessions: Vec<SessionId>,
    /// Only sessions of these projects; empty means every project.
    pub projects: Vec<ProjectId>,
    /// Sessions that are never touched, with their trees.
    pub pins: Vec<SessionId>,
    /// Only sessions whose whole tree was last used before this instant.
    pub used_before: Option<UnixMillis>,
    /// Leave the most recently used this many trees of each project alone.
    pub keep_last: Option<u32>,
    /// Only rows before the last completed compaction of their session: never sent to the model again. Event rows are never sent,
    /// so the event classes are not limited by it.
    pub before_compaction: bool,
    /// Whether [`Class::Technical`] may take the newest turn of a session.
    pub newest_turn: bool,
    /// Whether the other messages of a session may be touched although its newest turn is unfinished (P8).
    pub interrupted: bool,
    /// Whether [`Class::Sessions`] may take archived trees that `sessions` does not name.
    pub archived: bool,
    /// Whether [`Class::Sessions`] may take trees with a lost parent or a loop that `sessions` does not name.
    pub broken_trees: bool,
    /// How much is read to say how many bytes go.
    pub figures: Figures,
    /// The caller's clock.
    pub now: UnixMillis,
}

impl Selection {
    /// `classes` in every session, without any limit, at the instant `now` of the caller's clock.
    pub fn new(classes: Classes, now: UnixMillis) -> Self {
        Self {
            classes,
            sessions: Vec::new(),
            projects: Vec::new(),
            pins: Vec::new(),
            used_before: None,
            keep_last: None,
            before_compaction: false,
            newest_turn: false,
            interrupted: false,
            archived: false,
            broken_trees: false,
            figures: Figures::default(),
            now,
        }
    }
}

/// Rows of one table, by rowid (as the bits of the signed value).
pub type RowIds = RoaringTreemap;

/// What happens to the rows of one table. A row in no set stays as it is, byte for byte.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableFate {
    /// Rows that go, by the class that takes them. The sets are disjoint.
    pub dropped: BTreeMap<Class, RowIds>,
    /// Rows whose `data` is rewritten, by class; a row may be in several sets and in none of `dropped`.
    pub rewritten: BTreeMap<Class, RowIds>,
}

/// How much a plan reads to say how many bytes go. Which rows go whole is the same for all; of those that are only rewritten the rougher ones
/// name some that turn out to have nothing to lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figures {
    /// Beginnings of rows: what a class shortens in a row of more than a page is an upper bound. For a rebuild, which measures what it did.
    Rough,
    /// Also rows up to 256 KiB where only the whole row tells.
    #[default]
    Near,
    /// Also rows up to 16 MiB.
    Exact,
}

/// How far a byte figure can be relied on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Equal to what a removal frees.
    #[default]
    Exact,
    /// A removal frees at most this: the payload was not read.
    UpperBound,
}

/// What one class removes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassTotal {
    /// Rows that go.
    pub rows_dropped: u64,
    /// Rows that are rewritten.
    pub rows_rewritten: u64,
    /// Bytes of row data that are freed.
    pub bytes: ByteCount,
    /// Whether `bytes` is exact.
    pub precision: Precision,
    /// Sessions that lose something.
    pub sessions: u64,
}

/// A session, message or row that the selection named or covered and that stays, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Its session.
    pub session: SessionId,
    /// The message, where only one message stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why.
    pub reason: headwater_prune::KeptReason,
}

/// Everything a removal would do to a database, computed without reading the payload of what goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Fates by table name; a table without an entry is copied whole.
    pub fates: BTreeMap<&'static str, TableFate>,
    /// Totals by class, for each class selected.
    pub totals: BTreeMap<Class, ClassTotal>,
    /// What stays although it was selected. At most [`KEPT_MAX`] entries; `kept_count` counts all.
    pub kept: Vec<Kept>,
    /// How many were kept in all.
    pub kept_count: u64,
}

/// Most entries of [`Plan::kept`] (memory stays bounded whatever the database holds).
pub const KEPT_MAX: usize = 1000;

/// Computes what `selection` would do to the database behind `db`, without reading the payload of what goes. Rows that are shortened are
/// read where their beginning does not tell by how much, up to 256 KiB each; what larger ones lose is an upper bound, and marked as one
/// ([`Precision`]), unless [`Figures::Exact`] allows up to 16 MiB.
///
/// Holds the rows of one session at a time, some 200 bytes per session, and the sets of the answer. Where `db` is inside a transaction
/// the whole plan is of that instant; else each session is read in one of many short read transactions, and a database in use may move
/// between two of them: whoever applies the plan compares again (P5, P8).
///
/// # Errors
/// [`PlanError`] where the selection names what does not exist, the caller cancels, or the database cannot be read.
pub fn compute(
    db: &Connection,
    schema: &Schema,
    selection: &Selection,
    observer: &dyn Observer,
) -> Result<Plan, PlanError> {
    ensure_plannable(db, schema)?;
    let roster = Roster::read(db, schema)?;
    let forest = roster.forest();
    scope::ensure_pins_known(&roster, selection)?;
    let scope = scope::resolve(&roster, &forest, selection)?;
    let mut gather = gather::Gather::new(selection.classes);
    let mut judge = judge::Judge::new(rules(selection));
    let mut walker = Walker::new(db, schema, look(selection))?;
    let mut whole = whole::WholeSessions::new(db, schema)?;
    let mut surveyed = Surveyed::default();
    let mut kept = scope.kept.iter().peekable();
    let looks_at_rows =
        selection.classes.iter().any(|class| !matches!(class, Class::Sessions | Class::Leftover));
    for (at, session) in roster.sessions.iter().enumerate() {
        if observer.is_cancelled() {
            return Err(PlanErrorKind::Cancelled.into());
        }
        while let Some((_, reason)) = kept.next_if(|(position, _)| *position <= at) {
            judge::Sink::keep(&mut gather, &session.id, None, *reason);
        }
        if let Some(class) = scope.whole[at] {
            whole.take(&session.id, class, &mut gather)?;
        } else if looks_at_rows && scope.covered[at] {
            walker.read(session, &mut surveyed, |_| {})?;
            judge.session(session, &surveyed, &mut gather);
        }
        gather.next_session();
        let (done, total) = (at as u64 + 1, Some(roster.sessions.len() as u64));
        observer.progress(Progress { phase: "planning", done, total, unit: Unit::Sessions });
    }
    walker.end_slice()?;
    Ok(gather.finish())
}

/// Whether rows of this database can be named by rowid and their text compared byte by byte.
pub(crate) fn ensure_plannable(db: &Connection, schema: &Schema) -> Result<(), PlanError> {
    let encoding: String = db.pragma_query_value(None, "encoding", |row| row.get(0))?;
    if encoding != "UTF-8" {
        return Err(PlanErrorKind::Encoding(encoding).into());
    }
    let named = SESSION_COLUMNS.iter().map(|(table, _)| *table).chain(["session", "session_v2"]);
    for table in named {
        if schema.tables().get(table).is_some_and(|found| !found.has_rowid) {
            return Err(PlanErrorKind::NoRowid(table).into());
        }
    }
    Ok(())
}

pub(crate) fn rules(selection: &Selection) -> judge::Rules {
    let Selection { before_compaction, newest_turn, interrupted, .. } = *selection;
    let limits = Limits { before_compaction, newest_turn, interrupted };
    judge::Rules { classes: selection.classes, limits, together: true }
}

pub(crate) fn look(selection: &Selection) -> Look {
    let has = |class| selection.classes.has(class);
    let content = [
        Class::Events,
        Class::Diffs,
        Class::Metadata,
        Class::Attachments,
        Class::Compacted,
        Class::Technical,
    ];
    Look {
        content: content.into_iter().any(has),
        events: has(Class::Events) || has(Class::SupersededEvents),
        superseded: has(Class::SupersededEvents),
        depth: match selection.figures {
            Figures::Rough => Depth::Prefix,
            Figures::Near => Depth::Near(selection.classes),
            Figures::Exact => Depth::Exact,
        },
    }
}
