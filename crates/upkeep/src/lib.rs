//! Storage care for OpenCode databases: a synchronous library that never prints.
//!
//! [`ReadDatabase`] reads and leaves no trace, [`WriteDatabase`] is for commands that are about to write. A removal is always
//! plan, show, apply: a [`plan::Plan`] says which rows go, and the verb that applies it compares before it changes anything.

pub mod backup;
pub mod check;
pub mod demo;
pub mod export;
pub mod fence;
#[cfg(test)]
mod fixture;
pub mod history;
pub mod holders;
mod json_stream;
pub mod locate;
pub mod lock;
mod locks;
pub mod observer;
pub mod open;
pub mod os;
mod pages;
pub mod plan;
pub mod prune;
mod reading;
pub mod rebuild;
pub mod restore;
pub mod retention;
pub mod salvage;
pub mod schema;
pub mod search;
pub mod sessions;
pub mod show;
pub mod state;
pub mod stats;
mod survey;
pub mod undo;
mod units;
pub mod vacuum;

pub use locks::HeldLock;
pub use open::{
    Access, Content, DatabaseFile, LOCK_WAIT, OpenError, OpenErrorKind, ReadDatabase, WriteDatabase,
};
pub use reading::ReadError;
