#![forbid(unsafe_code)]
//! The conversation store in PostgreSQL.
//!
//! Each batch is one transaction, which locks the revision row of every session it names, in the order of their ids, before it writes: so writers of
//! one session follow each other, and their receipts form a chain (C3, C5). A transaction that PostgreSQL aborts for a deadlock or a
//! conflict is tried again. Pages are read in one read-only transaction at one snapshot (C7). Triggers raise the revision of a session whatever changes its
//! rows (C2); see `sql/`.

mod check;
mod epoch;
mod failure;
mod inspect;
mod pages;
mod rows;
mod run_tx;
mod schema;
mod snapshot;
mod store;
mod stored;
mod transaction;
mod triggers;

pub use schema::{Cause, OpenError};
pub use snapshot::{Reader, Snapshot};
pub use store::{PostgresOptions, PostgresStore};
