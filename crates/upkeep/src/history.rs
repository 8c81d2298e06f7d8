//! History: a conversation or the conversations of a workspace, searched, counted or planned page by page (P11, P12).
//!
//! Made for a caller that must answer quickly while OpenCode runs: a page looks at no more than [`ROWS_PER_PAGE`] messages and stops
//! after about [`PAGE_TIME`]; the next one goes on where it ended. [`crate::search`] is the fast way through a whole database.
//!
//! **Cursors** are opaque. They hold the place in the traversal and the row horizon, sealed with a key of the process
//! ([`CursorKey`]) over scope and request, so a cursor that was altered, made up, or taken from another scope or request is refused
//! and none survives a restart. They hold ids and numbers and no content.
//!
//! **Horizon.** A traversal sees the messages that were there when it began: what a running generation adds has a higher rowid.
//!
//! A session that stands in both storages is one session (fact B2): its 2.x messages come first, then those 1.x messages that the
//! 2.x storage does not have.

mod cursor;
mod look;
mod page;
mod scope;
#[cfg(test)]
mod tests;
mod walk;

use std::time::Duration;

pub use cursor::{CursorKey, InvalidCursor};
pub use page::{Candidate, HistoryError, KindTotal, Page, PageContent, Request, Skipped, page};
pub use scope::{Scope, Workspace};

/// Most messages that one page looks at.
pub const ROWS_PER_PAGE: u32 = 32;

/// After this a page ends with the message at hand.
pub const PAGE_TIME: Duration = Duration::from_millis(40);

/// A message that is larger in its rows is not read (P2).
pub const MESSAGE_BYTES_MAX: u64 = 16 << 20;
