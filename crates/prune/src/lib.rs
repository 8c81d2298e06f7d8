#![forbid(unsafe_code)]
//! What may go from a stored conversation and what remains, as pure functions of rows and rules.
//!
//! No I/O, no SQL, no clock: `headwater-upkeep` reads rows, asks here, and writes what the answer says. The first bytes of a row tell
//! what it is ([`part_facts`], [`message_facts`], [`event_entity`]); [`rewrite()`] and [`remove_items`] give the bytes to store, and
//! [`ensure_not_worse`] is asked before they are stored.

mod class;
pub mod decide;
mod decodable;
mod edit;
mod extents;
mod facts;
mod items;
mod kept;
mod object;
mod receipt;
mod request;
pub mod retention;
pub mod rewrite;
mod row_error;
#[cfg(test)]
mod shapes;
pub mod superseded;
pub mod tree;

pub use class::{Class, Classes, ModelEffect, UnknownClass};
pub use decodable::{Undecodable, ensure_decodable, ensure_not_worse};
pub use facts::{
    Entity, EntityKind, Facts, MessageFacts, PartFacts, PartKind, Role, ToolStatus, completion, event_entity,
    message_facts, part_facts,
};
pub use items::{ContentItem, assistant_items, content_range, removable, remove_items, remove_technical};
pub use kept::{KeptReason, ROW_BYTES_MAX};
pub use receipt::{Layout, PruneReceipt, RemovedItems};
pub use request::{Indexes, IndexesError, PruneRequest, RequestKey, request_key};
pub use rewrite::{Rewrite, RowKind, rewrite};
pub use row_error::{RowError, RowErrorKind};
