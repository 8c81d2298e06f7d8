//! The first pass: every session id with what filters and orders need.

use std::collections::BTreeMap;

use headwater_model::UnixMillis;
use rusqlite::Row;

use super::measure::Totals;
use super::{Archived, SessionQuery, SessionSort, is_within};
use crate::open::ReadDatabase;
use crate::reading::{ReadError, integer_of, is_set, or_null, short, text_of};

/// One session in few bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) id: Box<str>,
    pub(super) parent: Option<Box<str>>,
    /// Rowids of its rows.
    pub(super) v1: Option<i64>,
    pub(super) v2: Option<i64>,
    pub(super) last_used: UnixMillis,
    pub(super) created: UnixMillis,
    pub(super) children: u32,
    pub(super) parent_missing: bool,
    pub(super) is_match: bool,
    pub(super) totals: Totals,
}

/// All sessions, sorted by id.
#[derive(Debug, Default)]
pub(super) struct Roll {
    entries: Vec<Entry>,
    unreadable: u64,
}

impl Roll {
    pub(super) fn read(database: &ReadDatabase, query: &SessionQuery) -> Result<Self, ReadError> {
        let mut by_id = BTreeMap::new();
        let mut unreadable = 0;
        // The 2.x row comes second: it is the live one and has the last word.
        for table in ["session", "session_v2"] {
            if database.schema().has(table, "id") {
                unreadable += add_rows(database, query, table, &mut by_id)?;
            }
        }
        let mut roll = Self { entries: by_id.into_values().collect(), unreadable };
        roll.link();
        if query.roots_only {
            for entry in &mut roll.entries {
                entry.is_match &= entry.parent.is_none() || entry.parent_missing;
            }
        }
        Ok(roll)
    }

    fn link(&mut self) {
        for at in 0..self.entries.len() {
            let Some(parent) = &self.entries[at].parent else { continue };
            match self.position(parent) {
                Some(parent) => self.entries[parent].children += 1,
                None => self.entries[at].parent_missing = true,
            }
        }
    }

    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.id.as_ref().cmp(id)).ok()
    }

    pub(super) fn entry(&self, position: usize) -> &Entry {
        &self.entries[position]
    }

    pub(super) fn entry_mut(&mut self, position: usize) -> &mut Entry {
        &mut self.entries[position]
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn matching(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.is_match).count() as u64
    }

    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Positions of the sessions that match, in the order asked for, at most as many as asked for.
    pub(super) fn ordered(&self, query: &SessionQuery) -> Vec<usize> {
        let mut positions: Vec<usize> =
            (0..self.entries.len()).filter(|position| self.entries[*position].is_match).collect();
        let key = |position: &usize| {
            let entry = &self.entries[*position];
            match query.sort {
                SessionSort::LastUsed => i128::from(entry.last_used.get()),
                SessionSort::Created => i128::from(entry.created.get()),
                SessionSort::Bytes => i128::from(entry.totals.bytes().total.get()),
            }
        };
        // Stable: entries are sorted by id.
        positions.sort_by_key(|position| std::cmp::Reverse(key(position)));
        positions.truncate(query.limit.unwrap_or(usize::MAX));
        positions
    }
}

fn add_rows(
    database: &ReadDatabase,
    query: &SessionQuery,
    table: &'static str,
    by_id: &mut BTreeMap<Box<str>, Entry>,
) -> Result<u64, ReadError> {
    let schema = database.schema();
    let mut statement = database.connection().prepare(&format!(
        "SELECT rowid, {}, nullif({}, ''), {}, {}, {}, {}, {}, {}, {} FROM {table}",
        short(schema, table, "id"),
        short(schema, table, "parent_id"),
        short(schema, table, "project_id"),
        short(schema, table, "directory"),
        is_set(schema, table, "time_archived"),
        or_null(schema, table, "time_created"),
        or_null(schema, table, "time_updated"),
        or_null(schema, table, "time_idle"),
        or_null(schema, table, "time_viewed"),
    ))?;
    let mut unreadable = 0;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(id) = text_of(row, 1)?.filter(|id| !id.is_empty()) else {
            unreadable += 1;
            continue;
        };
        let id: Box<str> = id.into();
        let entry = by_id.entry(id.clone()).or_default();
        entry.id = id;
        let rowid: i64 = row.get(0)?;
        *(if table == "session" { &mut entry.v1 } else { &mut entry.v2 }) = Some(rowid);
        entry.parent = text_of(row, 2)?.map(Into::into);
        entry.is_match = is_match(row, query)?;
        entry.created = UnixMillis::new(integer_of(row, 6)?.unwrap_or(0));
        for column in 7..10 {
            entry.last_used = entry.last_used.max(UnixMillis::new(integer_of(row, column)?.unwrap_or(0)));
        }
    }
    Ok(unreadable)
}

fn is_match(row: &Row<'_>, query: &SessionQuery) -> rusqlite::Result<bool> {
    if let Some(project) = &query.project
        && text_of(row, 3)?.as_ref() != Some(project)
    {
        return Ok(false);
    }
    if let Some(root) = &query.directory
        && !text_of(row, 4)?.is_some_and(|directory| is_within(&directory, root))
    {
        return Ok(false);
    }
    let is_archived: bool = row.get(5)?;
    Ok(match query.archived {
        Archived::Included => true,
        Archived::Excluded => !is_archived,
        Archived::Only => is_archived,
    })
}
