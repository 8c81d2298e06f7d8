//! See `headwater_fuzz::canonical`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| headwater_fuzz::canonical(input));

#[cfg(not(fuzzing))]
fn main() {}
