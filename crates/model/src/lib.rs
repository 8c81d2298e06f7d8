#![forbid(unsafe_code)]
//! The values that every part of Headwater speaks of: ids, byte counts, points in time, content revisions; and of the conversation
//! store its revisions and epochs, records, receipts and selections.
//!
//! Pure: no I/O, no clock, no SQL. Each value has a private field and a checked constructor, so that holding one proves its
//! range; what a stored row holds outside these ranges stays a plain string or number and is reported, never forced in.

mod bytes;
mod content_revision;
pub mod conversation;
mod epoch;
mod id;
mod revision;
mod time;
mod wall_time;

pub use bytes::ByteCount;
pub use content_revision::{ContentRevision, ParseContentRevisionError};
pub use epoch::{Epoch, ParseEpochError};
pub use id::{EventId, IdError, MessageId, PartId, ProjectId, SessionId, TaskId, TurnId, WorkspaceId};
pub use revision::{ParseRevisionError, Revision};
pub use time::{DAY_MS, UnixMillis};
pub use wall_time::{OrderTime, ParseWallTimeError, WallTime};
