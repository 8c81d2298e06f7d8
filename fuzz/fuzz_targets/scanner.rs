//! See `headwater_fuzz::scanner`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| headwater_fuzz::scanner(input));

#[cfg(not(fuzzing))]
fn main() {}
