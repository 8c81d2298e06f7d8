//! Points in time as OpenCode stores them.

use serde::{Deserialize, Serialize};

/// Milliseconds of one day.
pub const DAY_MS: i64 = 86_400_000;

/// Milliseconds since 1970-01-01T00:00:00Z; the unit of every `time_*` column (fact A2). Any `i64` can be stored: zero, negative and
/// future values exist in real files and are judged by the code that uses them, not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(i64);

impl UnixMillis {
    /// The instant `ms` milliseconds after the epoch.
    pub const fn new(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Milliseconds from `earlier` to `self`, negative where `earlier` is later; saturates at the ends of `i64`.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `ms` milliseconds before `self`, saturating.
    #[must_use]
    pub const fn minus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_saturate_instead_of_wrapping() {
        assert_eq!(UnixMillis::new(i64::MAX).since(UnixMillis::new(i64::MIN)), i64::MAX);
        assert_eq!(UnixMillis::new(i64::MIN).minus_ms(1), UnixMillis::new(i64::MIN));
    }
}
