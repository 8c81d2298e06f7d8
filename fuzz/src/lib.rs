#![forbid(unsafe_code)]
//! The bodies of the fuzz targets: each takes any bytes and panics where a promise is broken.
//!
//! `fuzz_targets/` hands them to libFuzzer; `tests/corpus.rs` runs them over `corpus/`, so that every ordinary test run executes them.

mod canonical;
mod edits;
mod facts;
mod scanner;

pub use canonical::canonical;
pub use edits::edits;
pub use facts::facts;
pub use scanner::scanner;

/// A target by the name of its corpus.
pub const TARGETS: [(&str, fn(&[u8])); 4] =
    [("scanner", scanner), ("canonical", canonical), ("facts", facts), ("edits", edits)];
