#![forbid(unsafe_code)]
//! The values that every part of Headwater speaks of: ids, byte counts, points in time, content revisions.
//!
//! Pure: no I/O, no clock, no SQL. Each value has a private field and a checked constructor, so that holding one proves its
//! range; what a stored row holds outside these ranges stays a plain string or number and is reported, never forced in.

mod bytes;
mod content_revision;
mod id;
mod time;

pub use bytes::ByteCount;
pub use content_revision::{ContentRevision, ParseContentRevisionError};
pub use id::{EventId, IdError, MessageId, PartId, ProjectId, SessionId};
pub use time::{DAY_MS, UnixMillis};
