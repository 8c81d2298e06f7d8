#![forbid(unsafe_code)]
//! What may go from a stored conversation and what remains, as pure functions of rows and rules.
//!
//! No I/O, no SQL, no clock: `headwater-upkeep` reads rows, asks here, and writes what the answer says.

mod class;
pub mod decide;
mod kept;
pub mod retention;
pub mod superseded;
pub mod tree;

pub use class::{Class, Classes, ModelEffect, UnknownClass};
pub use kept::KeptReason;
