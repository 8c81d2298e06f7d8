//! See `headwater_fuzz::edits`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| headwater_fuzz::edits(input));

#[cfg(not(fuzzing))]
fn main() {}
