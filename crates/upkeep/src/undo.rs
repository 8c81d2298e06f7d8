//! Putting back what a prune removed, from its archive (P17).
//!
//! A prune that is given an [`Archive`] writes every row that it is about to delete or rewrite into it, synced, before it commits.
//! [`run`] restores, newest first, byte for byte, and only where the rows are as the prune left them.

mod archive;
mod hashed;
mod reader;
mod report;
mod restore;
mod row;

pub use archive::{Archive, ArchiveError, ArchiveErrorKind};
pub(crate) use archive::{MessageGuard, Unit};
pub use report::{LeftAlone, UndoError, UndoErrorKind, UndoPreview, UndoReport};
pub use restore::{Step, UndoOptions, preview, run};
pub(crate) use row::digest as row_digest;

#[cfg(test)]
mod tests;
