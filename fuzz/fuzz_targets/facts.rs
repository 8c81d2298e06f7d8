//! See `headwater_fuzz::facts`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| headwater_fuzz::facts(input));

#[cfg(not(fuzzing))]
fn main() {}
