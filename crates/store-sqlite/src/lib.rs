#![forbid(unsafe_code)]
//! The conversation store in one SQLite file.
//!
//! One thread owns the connection that writes: it takes what waits in its queue, writes all of it in one transaction, commits
//! them together and only then answers with their receipts (C5). Readers have connections of their own and take one short read transaction
//! for each page (C7). Triggers raise the revision of a session whatever changes its rows (C2); see `sql/`.
//!
//! A file of the agent host whose tables this store shares opens as it is; `schema` says what is added to it.

mod backup;
mod check;
mod connection;
mod epoch;
mod failure;
pub mod host_files;
mod inspect;
mod legacy;
mod options;
mod order;
mod pages;
mod readers;
mod rows;
mod schema;
mod snapshot;
mod store;
mod stored;
mod transaction;
mod work;
mod writer;

pub use inspect::inspect;
pub use options::{SqliteOptions, Synchronous};
pub use schema::{Cause, OpenError, OpenErrorKind, Upgrade};
pub use snapshot::Snapshot;
pub use store::SqliteStore;
