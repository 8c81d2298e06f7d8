//! What users reported, and what a running OpenCode does, against the verbs of the library.

mod live_fence;
mod reading;
