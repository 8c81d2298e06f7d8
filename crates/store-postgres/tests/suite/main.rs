//! The store on a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test")]

mod conformance;
mod faults;
mod locks;
mod scene;
