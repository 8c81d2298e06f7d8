#![forbid(unsafe_code)]
//! What every edge of Headwater shares: a strict JSON scanner, canonical JSON and content revisions, limits and stable codes.
//!
//! Pure: no I/O, no clock. Nothing here builds a tree of values: a document is looked at as ranges of its own bytes, so that the
//! memory used does not depend on what a row holds, and an edit can leave every byte alone that it does not mean to change.
//!
//! Read a document with [`json::Reader`], name the state of a message's content with [`canonical::content_revision`] (2.x) or
//! [`canonical::parts_revision`] (1.x).

pub mod canonical;
pub mod code;
pub mod json;
pub mod limits;
