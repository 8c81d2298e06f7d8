//! Random choices that can be made again.

use std::hash::{BuildHasher, Hasher, RandomState};

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Names a seed to begin with, as a failed test printed it.
const SEED: &str = "HEADWATER_TEST_SEED";

/// Choices that follow from a seed. Equal seeds give equal choices.
#[derive(Clone, Debug)]
pub struct Choices {
    seed: u64,
    random: TestRng,
}

impl Choices {
    /// Begins with the seed in `HEADWATER_TEST_SEED`, else with a random one, and prints it: the output of a failed test holds what repeats its choices.
    #[expect(clippy::print_stderr, reason = "what a test prints is seen where it fails")]
    pub fn begin() -> Self {
        let named = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let seed = named.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        eprintln!("{SEED}={seed}");
        Self::of(seed)
    }

    /// The choices of a seed.
    pub fn of(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self { seed, random: TestRng::from_seed(RngAlgorithm::ChaCha, &bytes) }
    }

    /// The choices of one of several that run beside each other.
    #[must_use]
    pub fn of_part(&self, part: usize) -> Self {
        Self::of(self.seed.wrapping_add(1 + part as u64))
    }

    /// A number below `end`, which must not be zero.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.random.next_u64() % end as u64).unwrap_or_default()
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
