//! A short walk of every target through inputs that nobody wrote: the corpus, changed at random from a fixed seed, so that each run does
//! the same. It takes seconds; `cargo xtask fuzz` goes on from there.

use std::fs;
use std::path::Path;

use headwater_fuzz::TARGETS;

/// Inputs for each target.
const INPUTS: usize = 6000;

/// Longest input. The corpus has longer ones, and `corpus.rs` runs them.
const BYTES_MAX: usize = 4096;

/// What JSON is made of, and what is rare in it.
const PIECES: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud83d",
    b"\\ude00",
    b"\\u0000",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"9007199254740993",
    b"0.10",
    b"\"type\":\"tool\"",
    b"\"state\":{",
    b"\"status\":\"completed\"",
    b"\"content\":[",
    b"\xff",
    b"\xed\xa0\x80",
];

/// xorshift64*: repeatable, and good enough to vary inputs.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(bits).expect("31 bits fit") % end.max(1)
    }
}

#[test]
fn every_target_holds_over_inputs_that_nobody_wrote() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut seeds = Vec::new();
    for (name, _) in TARGETS {
        let mut paths: Vec<_> = fs::read_dir(corpus.join(name))
            .expect("a corpus")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        seeds.extend(paths.iter().map(|path| fs::read(path).expect("an input")));
    }
    seeds.retain(|seed| seed.len() <= BYTES_MAX);
    assert!(seeds.len() > 30, "only {} inputs to start from", seeds.len());
    for (name, target) in TARGETS {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for number in 0..INPUTS {
            let mut input = seeds[random.below(seeds.len())].clone();
            for _ in 0..=random.below(4) {
                change(&mut input, &seeds, &mut random);
            }
            input.truncate(BYTES_MAX);
            let held = std::panic::catch_unwind(|| target(&input));
            assert!(held.is_ok(), "{name}, input {number}: {}", String::from_utf8_lossy(&input));
        }
    }
}

/// One step of what a fuzzer does.
fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = at + random.below(input.len() - at + 1);
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 => drop(input.drain(at..end)),
        2 => drop(input.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
        3 => {
            let copied = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            drop(input.splice(to..to, copied));
        }
        4 => {
            let other = &seeds[random.below(seeds.len())];
            input.truncate(at);
            input.extend_from_slice(&other[random.below(other.len() + 1)..]);
        }
        _ => drop(input.splice(at..end, PIECES[random.below(PIECES.len())].iter().copied())),
    }
}
