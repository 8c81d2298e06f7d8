//! Adds up what a walk sees.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use headwater_model::ByteCount;
use headwater_prune::decide::{Author, Item};
use headwater_prune::{Class, KeptReason};

use super::report::{Group, SessionBytes};
use crate::plan::ClassTotal;
use crate::plan::gather::add;
use crate::plan::judge::{Sink, Taken};
use crate::survey::content::{NameIndex, Names};
use crate::survey::events::EventRow;
use crate::survey::walker::Surveyed;

/// The tables whose rows a walk sees one by one, in the order of [`Tally::tables`].
pub(super) const WALKED: [&str; 4] = ["event", "message", "part", "session_message"];
pub(super) const EVENT: usize = 0;
pub(super) const MESSAGE: usize = 1;
pub(super) const PART: usize = 2;
pub(super) const SESSION_MESSAGE: usize = 3;

/// Rows and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, bytes: u64) {
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    pub(super) fn group(self, name: impl Into<String>) -> Group {
        Group { name: name.into(), rows: self.rows, bytes: ByteCount::new(self.bytes) }
    }
}

/// A row that may be among the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Large {
    pub(super) bytes: u64,
    /// Position in [`WALKED`].
    pub(super) table: usize,
    pub(super) rowid: i64,
    /// Position of the session in the roster.
    pub(super) session: usize,
}

/// Rows by a name, by its position in [`Names`].
pub(super) type ByName = Vec<Count>;

/// What one walk has seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) tables: [Count; 4],
    pub(super) without_session: [Count; 4],
    pub(super) unreadable: [Count; 4],
    pub(super) event_types: ByName,
    pub(super) part_kinds: ByName,
    pub(super) tools: ByName,
    pub(super) message_types: ByName,
    /// User, assistant, other and unreadable messages.
    pub(super) roles: [Count; 4],
    pub(super) largest: BinaryHeap<Reverse<Large>>,
    pub(super) largest_max: usize,
    /// What the rows of each session hold, with the bytes that are in 1.x tables, by position in the roster.
    pub(super) sessions: Vec<(usize, SessionBytes, u64)>,
    pub(super) classes: ClassTally,
}

impl Tally {
    pub(super) fn new(largest_max: usize) -> Self {
        Self { largest_max, ..Self::default() }
    }

    /// One event row of the session at `session`.
    pub(super) fn event(&mut self, session: usize, row: EventRow) {
        count(&mut self.event_types, row.event_type, row.length);
        self.row(EVENT, session, row.rowid, row.length);
    }

    /// Everything that the walk knows of the session at `session`, whose event rows went through [`Tally::event`].
    pub(super) fn session(&mut self, session: usize, exists: bool, rows: &Surveyed) {
        let before = self.tables;
        self.content_v1(session, rows);
        let v1_bytes =
            self.tables[MESSAGE].bytes + self.tables[PART].bytes - before[MESSAGE].bytes - before[PART].bytes;
        self.content_v2(session, rows);
        let events = &rows.events;
        let seen = Count {
            rows: events.len(),
            bytes: events.v1.bytes + events.other.bytes + events.deletions.bytes,
        };
        self.unreadable[EVENT].rows += events.unreadable.rows;
        self.unreadable[EVENT].bytes += events.unreadable.bytes;
        let mut own =
            SessionBytes { rows: seen.rows, event_bytes: seen.bytes.into(), ..SessionBytes::default() };
        if !exists {
            self.without_session[EVENT].merge(seen);
        }
        for table in [MESSAGE, PART, SESSION_MESSAGE] {
            let rows = self.tables[table].rows - before[table].rows;
            let bytes = self.tables[table].bytes - before[table].bytes;
            own.rows += rows;
            own.content_bytes += bytes.into();
            if !exists {
                self.without_session[table].merge(Count { rows, bytes });
            }
        }
        self.sessions.push((session, own, v1_bytes));
    }

    fn content_v1(&mut self, session: usize, rows: &Surveyed) {
        for message in &rows.v1.messages {
            let role = match message.author {
                Author::User => 0,
                Author::Assistant { .. } => 1,
                Author::Other => 2,
                Author::Unreadable => 3,
            };
            self.roles[role].add(message.length);
            if message.author == Author::Unreadable {
                self.unreadable[MESSAGE].add(message.length);
            }
            self.row(MESSAGE, session, message.rowid, message.length);
        }
        for part in &rows.v1.parts {
            count(&mut self.part_kinds, part.kind, part.length);
            if let Some(tool) = part.tool {
                count(&mut self.tools, tool, part.length);
            }
            if matches!(part.item, Item::Unreadable | Item::Unknown) {
                self.unreadable[PART].add(part.length);
            }
            self.row(PART, session, part.rowid, part.length);
        }
    }

    fn content_v2(&mut self, session: usize, rows: &Surveyed) {
        for message in &rows.v2.messages {
            count(&mut self.message_types, message.kind, message.length);
            if message.author == Author::Unreadable {
                self.unreadable[SESSION_MESSAGE].add(message.length);
            }
            self.row(SESSION_MESSAGE, session, message.rowid, message.length);
        }
    }

    fn row(&mut self, table: usize, session: usize, rowid: i64, bytes: u64) {
        self.tables[table].add(bytes);
        let is_large = self.largest.len() < self.largest_max
            || self.largest.peek().is_some_and(|Reverse(smallest)| bytes > smallest.bytes);
        if is_large {
            self.keep_large(Large { bytes, table, rowid, session });
        }
    }

    fn keep_large(&mut self, row: Large) {
        self.largest.push(Reverse(row));
        if self.largest.len() > self.largest_max {
            self.largest.pop();
        }
    }

    /// Adds what another walk over other sessions has seen, whose names are `theirs`; `names` are this one's.
    pub(super) fn merge(&mut self, names: &mut Names, mut other: Self, theirs: &Names) {
        let pairs = [
            (&mut self.tables, other.tables),
            (&mut self.without_session, other.without_session),
            (&mut self.unreadable, other.unreadable),
            (&mut self.roles, other.roles),
        ];
        for (own, other) in pairs {
            own.iter_mut().zip(other).for_each(|(own, other)| own.merge(other));
        }
        let pairs = [
            (&mut self.event_types, &other.event_types),
            (&mut self.part_kinds, &other.part_kinds),
            (&mut self.tools, &other.tools),
            (&mut self.message_types, &other.message_types),
        ];
        for (own, other) in pairs {
            for (position, seen) in (0..).zip(other) {
                at(own, names.index(theirs.name(position))).merge(*seen);
            }
        }
        for Reverse(row) in std::mem::take(&mut other.largest) {
            self.keep_large(row);
        }
        self.sessions.append(&mut other.sessions);
        self.classes.merge(&other.classes);
    }
}

fn at(counts: &mut ByName, name: NameIndex) -> &mut Count {
    let position = usize::from(name);
    if counts.len() <= position {
        counts.resize(position + 1, Count::default());
    }
    &mut counts[position]
}

fn count(counts: &mut ByName, name: NameIndex, bytes: u64) {
    at(counts, name).add(bytes);
}

/// The groups of `counts`, largest first.
pub(super) fn groups(counts: &ByName, names: &Names) -> Vec<Group> {
    let named = (0..).zip(counts).filter(|(_, count)| count.rows > 0);
    let mut groups: Vec<Group> = named.map(|(position, count)| count.group(names.name(position))).collect();
    sort(&mut groups);
    groups
}

/// Sorts groups by bytes, largest first, then by name.
pub(super) fn sort(groups: &mut [Group]) {
    groups.sort_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
}

/// A [`Sink`] that adds up what each class would free.
#[derive(Debug, Default)]
pub(super) struct ClassTally {
    pub(super) totals: BTreeMap<Class, ClassTotal>,
    touched: headwater_prune::Classes,
}

impl ClassTally {
    /// Counts the session at hand and turns to the next.
    pub(super) fn next_session(&mut self) {
        for class in self.touched.iter() {
            self.totals.entry(class).or_default().sessions += 1;
        }
        self.touched = headwater_prune::Classes::NONE;
    }

    fn merge(&mut self, other: &Self) {
        for (class, theirs) in &other.totals {
            let own = self.totals.entry(*class).or_default();
            own.rows_dropped += theirs.rows_dropped;
            own.rows_rewritten += theirs.rows_rewritten;
            own.bytes += theirs.bytes;
            own.sessions += theirs.sessions;
            own.precision = own.precision.max(theirs.precision);
        }
    }
}

impl Sink for ClassTally {
    fn take(&mut self, taken: &Taken<'_>) {
        add(self.totals.entry(taken.class).or_default(), taken);
        self.touched = self.touched.with(taken.class);
    }

    fn keep(&mut self, _session: &str, _message: Option<&str>, _reason: KeptReason) {}
}
