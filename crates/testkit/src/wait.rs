//! Waiting for other processes, which tell nobody when they are done.

use std::time::{Duration, Instant};

/// How long a test waits for a state of another process before it fails.
pub const LIMIT: Duration = Duration::from_mins(2);

/// Waits for a state of another process, by asking again and again.
///
/// # Panics
/// If it does not come within [`LIMIT`].
pub fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !reached() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
