//! Lists sessions without reading a payload: names, times, trees, state, and sizes by `octet_length` (case of one 461 MiB row).
//!
//! A session that stands in both layouts is one session; its 2.x row is the live one (fact B2).

use headwater_model::{ByteCount, UnixMillis};
use serde::Serialize;

use crate::observer::Observer;
use crate::open::ReadDatabase;
use crate::reading::ReadError;
use crate::schema::Layouts;

mod describe;
mod measure;
mod roll;

use measure::Measure;
use roll::Roll;

/// One session as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its id.
    pub id: String,
    /// Its title, cut at [`TITLE_BYTES_MAX`].
    pub title: Option<String>,
    /// Id of its project.
    pub project: Option<String>,
    /// Where it works.
    pub directory: Option<String>,
    /// Id of the session that started it as a subagent.
    pub parent: Option<String>,
    /// Whether `parent` names a session that does not exist.
    pub parent_missing: bool,
    /// Sessions that name it as parent.
    pub children: u64,
    /// Which tables have a row for it.
    pub layouts: Layouts,
    /// Version of OpenCode that made it.
    pub version: Option<String>,
    /// When it was created.
    pub created: UnixMillis,
    /// When it was last used: the latest of its `time_updated`, `time_idle` and `time_viewed`.
    pub last_used: UnixMillis,
    /// When it was archived.
    pub archived: Option<UnixMillis>,
    /// Messages of the conversation; those of a session in both layouts are counted in the 2.x table.
    pub messages: u64,
    /// What is stored for it.
    pub bytes: SessionBytes,
    /// What its row says about running work.
    pub state: SessionState,
}

/// Payload bytes of one session; both layouts together where both hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionBytes {
    /// All of it.
    pub total: ByteCount,
    /// `message.data` (1.x).
    pub messages: ByteCount,
    /// `part.data` (1.x).
    pub parts: ByteCount,
    /// `session_message.data` (2.x).
    pub session_messages: ByteCount,
    /// `event.data`.
    pub events: ByteCount,
}

/// What a session's row says about running work (fact B3). A 1.x row says nothing about a running turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts of a row, as a report lists them")]
pub struct SessionState {
    /// The execution claim is set: running, or to be resumed.
    pub executing: bool,
    /// A compaction runs.
    pub compacting: bool,
    /// A revert is staged.
    pub revert_staged: bool,
    /// Input waits to be delivered.
    pub input_waiting: bool,
}

/// Longest title in a listing, in bytes.
pub const TITLE_BYTES_MAX: usize = 1024;

/// Which sessions are listed, in which order.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only sessions of this project.
    pub project: Option<String>,
    /// Only sessions that work in this directory or below it.
    pub directory: Option<String>,
    /// What to do with archived ones.
    pub archived: Archived,
    /// Only sessions without a parent. One whose parent is missing counts as such.
    pub roots_only: bool,
    /// The order.
    pub sort: SessionSort,
    /// At most this many.
    pub limit: Option<usize>,
}

/// What a listing does with archived sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// Lists them with the others.
    #[default]
    Included,
    /// Leaves them out.
    Excluded,
    /// Lists nothing else.
    Only,
}

/// The order of a listing. Ties are broken by id, so that the order is total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionSort {
    /// Last used first.
    #[default]
    LastUsed,
    /// Largest first.
    Bytes,
    /// Newest first.
    Created,
}

/// What a listing found in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionCounts {
    /// Sessions in the database.
    pub sessions: u64,
    /// Sessions that the query matches.
    pub matching: u64,
    /// Sessions listed.
    pub listed: u64,
    /// Session rows whose id is not usable text.
    pub unreadable: u64,
}

/// Hands the sessions that `query` matches to `each`, in order.
///
/// Holds some 150 bytes per session of the database and nothing per row. Sizes are looked up by index where few sessions are listed,
/// else added up in one pass over each table; neither reads a payload.
///
/// # Errors
/// [`ReadError`], also what `each` returns.
pub fn list(
    database: &ReadDatabase,
    query: &SessionQuery,
    observer: &dyn Observer,
    mut each: impl FnMut(SessionSummary) -> Result<(), ReadError>,
) -> Result<SessionCounts, ReadError> {
    let mut roll = Roll::read(database, query)?;
    let mut counts = SessionCounts {
        sessions: roll.len(),
        matching: roll.matching(),
        listed: 0,
        unreadable: roll.unreadable(),
    };
    let mut measure = Measure::new(database, query, &mut roll, observer)?;
    for position in roll.ordered(query) {
        if observer.is_cancelled() {
            return Err(ReadError::Cancelled);
        }
        let bytes = measure.of(&roll, position)?;
        // A session that was deleted since the first look is left out.
        if let Some(summary) = describe::session(database, &roll, position, bytes)? {
            counts.listed += 1;
            each(summary)?;
        }
    }
    Ok(counts)
}

/// As [`list`], into a vector; for callers that limit the number.
///
/// # Errors
/// As [`list`].
pub fn collect(
    database: &ReadDatabase,
    query: &SessionQuery,
    observer: &dyn Observer,
) -> Result<(Vec<SessionSummary>, SessionCounts), ReadError> {
    let mut sessions = Vec::new();
    let counts = list(database, query, observer, |session| {
        sessions.push(session);
        Ok(())
    })?;
    Ok((sessions, counts))
}

/// Whether `directory` is `root` or lies below it: a boundary of names, so that `/a/bc` is not in `/a/b` (P12).
pub(crate) fn is_within(directory: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    directory.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
