//! What users reported, and what a running OpenCode does, against the verbs of the library.
#![expect(
    clippy::unwrap_used,
    reason = "functions beside the tests: a test that cannot set its scene up has failed"
)]

mod live_fence;
mod reading;
