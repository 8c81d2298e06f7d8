//! What a bulk prune did: done, refused, skipped, failed (P13).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use headwater_model::ByteCount;
use headwater_prune::{Class, KeptReason};
use rusqlite::Connection;
use serde::Serialize;

use super::answer::Why;
use crate::lock::LockReport;
use crate::plan::{KEPT_MAX, Kept, Plan};

/// What a bulk prune did. Holds no content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PruneReport {
    /// What each class removed.
    pub classes: BTreeMap<Class, ClassDone>,
    /// Rows that the plan names and that are as they were, by class.
    pub rows_left: BTreeMap<Class, RowsLeft>,
    /// Sessions and messages that stayed, beyond those that the plan already named. At most [`KEPT_MAX`] entries; `kept_count` counts
    /// all.
    pub kept: Vec<Kept>,
    /// How many stayed in all.
    pub kept_count: u64,
    /// Why it ended before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// The file before and after.
    pub space: Space,
    /// What it cost other processes.
    pub locks: LockReport,
}

/// What one class removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassDone {
    /// Rows that are gone.
    pub rows_dropped: u64,
    /// Rows whose data is shorter.
    pub rows_rewritten: u64,
    /// Bytes of row data that went.
    pub bytes: ByteCount,
    /// Messages with a receipt (class technical).
    pub messages: u64,
}

/// Planned rows of one class that were not touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowsLeft {
    /// They are not what was planned any more, or their session may not be written at this moment.
    pub changed: u64,
    /// They are gone: somebody else removed them.
    pub gone: u64,
}

/// Why a bulk prune ended before its end. What is committed stays committed; the same prune again does the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The caller asked for it.
    Cancelled,
    /// Somebody else is at work.
    Blocked(Why),
    /// It failed; the error stands beside the report.
    Failed,
}

/// Sizes of the file, measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Size of the database file before.
    pub file_bytes_before: ByteCount,
    /// Size of the database file after; online pruning frees pages inside the file and does not shrink it.
    pub file_bytes_after: ByteCount,
    /// Bytes of free pages before.
    pub free_bytes_before: ByteCount,
    /// Bytes of free pages after.
    pub free_bytes_after: ByteCount,
    /// Size of the write-ahead log after.
    pub log_bytes_after: ByteCount,
}

impl Space {
    /// Bytes that became free inside the file.
    pub fn freed(&self) -> ByteCount {
        self.free_bytes_after.saturating_sub(self.free_bytes_before)
    }

    pub(super) fn before(connection: &Connection, path: &Path) -> rusqlite::Result<Self> {
        Ok(Self {
            file_bytes_before: file_bytes(path),
            free_bytes_before: free_bytes(connection)?,
            ..Self::default()
        })
    }

    pub(super) fn after(&mut self, connection: &Connection, path: &Path, log: &Path) -> rusqlite::Result<()> {
        self.file_bytes_after = file_bytes(path);
        self.free_bytes_after = free_bytes(connection)?;
        self.log_bytes_after = file_bytes(log);
        Ok(())
    }
}

impl PruneReport {
    /// Whether anything was removed.
    pub fn is_empty(&self) -> bool {
        self.classes.values().all(|done| *done == ClassDone::default())
    }

    pub(super) fn class(&mut self, class: Class) -> &mut ClassDone {
        self.classes.entry(class).or_default()
    }

    /// Notes that something stayed, unless `plan` says so already.
    pub(super) fn keep(&mut self, plan: &Plan, kept: Kept) {
        if plan.kept.contains(&kept) || self.kept.contains(&kept) {
            return;
        }
        self.kept_count += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push(kept);
        }
    }

    /// Whether something stayed for `reason`.
    pub fn has_kept(&self, reason: KeptReason) -> bool {
        self.kept.iter().any(|kept| kept.reason == reason)
    }
}

fn free_bytes(connection: &Connection) -> rusqlite::Result<ByteCount> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    Ok(ByteCount::new(u64::from(pragma("freelist_count")?) * u64::from(pragma("page_size")?)))
}

/// By name and without opening: a closed descriptor would drop SQLite's locks of this process.
fn file_bytes(path: &Path) -> ByteCount {
    ByteCount::new(fs::metadata(path).map_or(0, |found| found.len()))
}
