#![forbid(unsafe_code)]
//! stub
fn main() {}
