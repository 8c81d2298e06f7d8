//! The caller's clock, moved on by the monotonic one.

use std::time::Instant;

use headwater_model::UnixMillis;

/// An instant of the caller's clock and how long ago it was read. Steps of the system clock during an operation do not show.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: UnixMillis,
    read: Instant,
}

impl Clock {
    /// A clock that shows `now` at this moment.
    pub fn starting_at(now: UnixMillis) -> Self {
        Self { start: now, read: Instant::now() }
    }

    /// What it shows.
    pub fn now(self) -> UnixMillis {
        let elapsed = i64::try_from(self.read.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.start.minus_ms(elapsed.saturating_neg())
    }
}
