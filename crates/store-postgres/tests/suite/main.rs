//! The store on a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test")]

mod catalogue;
mod conformance;
mod cutover;
mod faults;
mod locks;
mod scene;
