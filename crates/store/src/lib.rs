#![forbid(unsafe_code)]
//! What a conversation store can do, and the rules that every backend shares.
//!
//! The rows of sessions, messages and turns are the only truth. A [`ConversationSource`] reads them a page at a time, each page at one
//! revision; a [`ConversationWriter`] changes them, one transaction for each [`Batch`], and answers with [receipts](headwater_model::conversation::Receipt)
//! that were captured inside that transaction. How a batch becomes changes of single rows, and how those are described, is in [`apply`]: a backend
//! offers its [`Rows`] and nothing else. What the rules are that do not depend on a database (which turns are visible, which
//! tools are pending, what a patch does to metadata) is in [`rules`]; what a backend has to do beyond them is held by the suite in
//! `conformance` (a feature of the same name), which also runs a naive model in memory beside each backend.
//!
//! No SQL, file, socket or clock: time comes with each batch.

pub mod apply;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod finding;
mod inspection;
mod life;
mod overview;
mod page;
mod rows;
pub mod rules;
mod source;
mod stretch;
pub mod transfer;
mod write;
mod writer;

pub use error::{BadMutation, ReadError, ReadErrorKind, Retry, WriteError, WriteErrorKind};
pub use finding::{EXAMPLES_MAX, Fault, Finding, Severity};
pub use inspection::{Inspection, JournalKind, JournalPart, Standing};
pub use life::Life;
pub use overview::SessionOverview;
pub use page::{Page, PageLimit, PageLimitError, PageQuery, Sort};
pub use rows::{RawRows, RefusedRow, Rows};
pub use source::ConversationSource;
pub use stretch::Stretch;
pub use write::{
    Batch, ContentLimit, MessagePatch, MetadataChange, Mutation, NewMessage, NewSession, NewTurn, TurnPatch,
    Written,
};
pub use writer::ConversationWriter;
