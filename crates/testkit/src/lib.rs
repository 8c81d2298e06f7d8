#![forbid(unsafe_code)]
//! testkit
