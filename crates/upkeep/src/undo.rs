//! Putting back what a prune removed, from its archive (P17).

mod archive;
mod reader;
mod row;

pub use archive::{Archive, ArchiveError, ArchiveErrorKind};
pub(crate) use archive::{FrameWriter, MessageGuard, Unit};
pub(crate) use row::digest as row_digest;
