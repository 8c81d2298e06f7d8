//! Repeatable pseudo-random numbers and text: equal seeds give equal output on every machine.

/// A splitmix64 generator (Steele, Lea and Flood 2014). Good enough to vary test data; not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator whose seed is a text, by FNV-1a.
    pub fn of_text(seed: &str) -> Self {
        let hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..end`. `end` must not be 0.
    #[expect(clippy::cast_possible_truncation, reason = "the remainder of a usize fits")]
    pub const fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// A number in 0.0..1.0.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

const WORDS: [&str; 32] = [
    "alpha", "branch", "buffer", "column", "commit", "cursor", "delta", "engine", "handler", "index",
    "layout", "merge", "module", "parser", "query", "render", "request", "response", "result", "schema",
    "sequence", "session", "stream", "table", "token", "update", "value", "window", "worker", "writer",
    "yield", "zone",
];

/// Readable lines of exactly `length` ASCII characters, the same for the same seed. A shorter text is the beginning of a longer one.
pub fn filler(length: usize, seed: &str) -> String {
    let mut random = Random::of_text(seed);
    let mut text = String::with_capacity(length + 128);
    while text.len() < length {
        for i in 0..12 {
            text.push_str(if i == 0 { "" } else { " " });
            text.push_str(random.pick(&WORDS));
        }
        text.push_str(".\n");
    }
    text.truncate(length);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_depends_on_nothing_but_length_and_seed() {
        assert_eq!(filler(1000, "a"), filler(1000, "a"));
        assert_ne!(filler(1000, "a"), filler(1000, "b"));
        assert!(filler(1000, "a").starts_with(&filler(10, "a")));
        assert_eq!(filler(0, "a"), "");
    }
}
