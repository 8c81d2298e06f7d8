//! Export: conversations out of a database, as lossless JSON lines or as Markdown to read (P17). Reads, and writes to the caller's
//! output only.
//!
//! **JSON lines.** The first line says what follows: `{"format":"headwater-export","version":1}`. Every other line is one stored row:
//! `{"table":"part","row":{"id":"prt_1","time_created":5,...}}`, all columns in stored order, unknown ones included. A value is
//!
//! | stored as | written as |
//! |---|---|
//! | NULL | `null` |
//! | text | a string |
//! | text that is not UTF-8 | `{"text":"BASE64"}` |
//! | blob | `{"blob":"BASE64"}` |
//! | integer | a number; outside ±2^53 `{"integer":"DIGITS"}`, since many readers of JSON keep no more digits |
//! | real | `{"real":"TEXT"}`, the shortest text that gives the same number, or `inf`, `-inf` |
//!
//! so that type and bytes of every value can be restored. Rows come session by session, parents before children, and of a session
//! table by table, in the order in which they were made. A table belongs to a session where it has a column `session_id` or
//! `aggregate_id`; so rows of tables that are not known here are exported as well. The project of a session comes before it.
//! What OpenCode keeps with a session is exported with it, also the secret of a shared session.
//!
//! **Markdown.** Title and facts of each session, then its messages: text always, reasoning and tool calls where asked for. Sessions of
//! which only events are left (P15: they may be the only copy) are put together from the newest event of each message and part.
//!
//! Memory is bounded for values of any size: large ones are written from chunks.

mod markdown;
mod recovered;
mod rows;
mod subjects;
#[cfg(test)]
mod tests;
mod value;

use std::io::Write;

use headwater_model::SessionId;
use serde::Serialize;

use crate::ReadDatabase;
use crate::observer::{Observer, Progress, Unit};
use crate::reading::ReadError;

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportScope {
    /// These sessions, in this order. A session that is gone is exported from what is left of it.
    Sessions {
        /// Their ids.
        ids: Vec<SessionId>,
        /// Also the sessions that they started, and so on.
        with_children: bool,
    },
    /// Whatever belongs to sessions that have no row: events and other rows.
    Recoverable,
    /// Every session, and what is recoverable.
    All,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Every row, lossless.
    JsonLines,
    /// Messages to read.
    Markdown {
        /// Also reasoning and tool calls with their input and output.
        with_technical: bool,
    },
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportTotals {
    /// Sessions, children included.
    pub sessions: u64,
    /// Sessions among them of which only events or other rows are left.
    pub recovered: u64,
    /// Rows (JSON lines) or messages (Markdown).
    pub entries: u64,
    /// Rows or messages that cannot be decoded: in JSON lines none, in Markdown they are named.
    pub unreadable: u64,
}

/// Writes `scope` of `database` to `out`.
///
/// Each session is read in one transaction, so its rows belong together; nothing is held open between two sessions.
///
/// # Errors
/// [`ReadError::NoSuchSession`] where nothing in the database belongs to a session that was asked for, before anything is written;
/// [`ReadError::Output`] where `out` fails; [`ReadError::Cancelled`]; other [`ReadError`]s. What was written before is whole lines.
pub fn run(
    database: &ReadDatabase,
    scope: &ExportScope,
    format: ExportFormat,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<ExportTotals, ReadError> {
    let subjects = subjects::of(database, scope)?;
    let mut totals = ExportTotals::default();
    if format == ExportFormat::JsonLines {
        out.write_all(b"{\"format\":\"headwater-export\",\"version\":1}\n").map_err(ReadError::Output)?;
    }
    let mut projects = rows::Projects::default();
    for subject in &subjects {
        if observer.is_cancelled() {
            return Err(ReadError::Cancelled);
        }
        let transaction = database.connection().unchecked_transaction()?;
        let written = match format {
            ExportFormat::JsonLines => rows::write(database, subject, &mut projects, observer, out)?,
            ExportFormat::Markdown { with_technical } => {
                markdown::write(database, subject, with_technical, observer, out)?
            }
        };
        transaction.finish()?;
        totals.sessions += 1;
        totals.recovered += u64::from(!subject.has_row);
        totals.entries += written.entries;
        totals.unreadable += written.unreadable;
        observer.progress(Progress {
            phase: "exporting",
            done: totals.entries,
            total: None,
            unit: if format == ExportFormat::JsonLines { Unit::Rows } else { Unit::Messages },
        });
    }
    out.flush().map_err(ReadError::Output)?;
    Ok(totals)
}

/// What one session gave.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    entries: u64,
    unreadable: u64,
}
