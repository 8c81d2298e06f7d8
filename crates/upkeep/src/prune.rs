//! Removing what was previewed or planned, from a database that may be in use.
//!
//! [`preview_message`] reads one message and names what may go. [`Pruner::message`] removes exactly that or nothing (P5), under the
//! [fence](crate::fence), in one short transaction, with a receipt (P6). [`Pruner::apply`] does the same for a whole
//! [`Plan`](crate::plan::Plan), message by message (P13).
//!
//! The steps and what a crash at each of them leaves are in `docs/spec/prune-protocol.md`; [`Step`] names them.

mod answer;
mod batch;
mod bulk;
mod content;
mod events;
mod fields;
mod prepare;
mod preview;
mod pruner;
mod receipts;
mod report;
mod resolve;
mod step;
mod technical;
mod whole;
mod work;

pub use answer::{Answer, Blocked, PruneError, PruneErrorKind, Why};
pub use preview::{MessagePreview, PreviewItem, preview_message};
pub use pruner::{PruneOptions, Pruner};
pub use receipts::KV_PREFIX;
pub use report::{ClassDone, PruneReport, RowsLeft, Space, Stopped};
pub use step::Step;

pub(crate) use content::stored_digest;
pub(crate) use receipts::kv_key;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
