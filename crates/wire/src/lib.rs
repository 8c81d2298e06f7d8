#![forbid(unsafe_code)]
//! wire
