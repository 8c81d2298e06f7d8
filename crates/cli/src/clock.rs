//! The one place that reads the clock.

use std::time::{Duration, Instant};

use headwater_model::{UnixMillis, WallTime};

/// The present instant.
pub(crate) fn now() -> UnixMillis {
    UnixMillis::new(jiff::Timestamp::now().as_millisecond())
}

/// The present instant as the conversation store keeps it.
pub(crate) fn wall() -> WallTime {
    WallTime::from_unix_micros(jiff::Timestamp::now().as_microsecond()).unwrap_or(WallTime::UNKNOWN)
}

/// Measures from when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins to measure.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since then.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
