//! What this process has read, from the kernel's own count.

use std::fs;
use std::time::Instant;

/// Bytes and seconds of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Phase {
    pub(crate) seconds: f64,
    pub(crate) read_bytes: u64,
}

/// A running count.
#[derive(Debug)]
pub(crate) struct Meter {
    started: Instant,
    read_bytes: u64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), read_bytes: read_bytes() }
    }

    /// What has passed since the start or the last call.
    pub(crate) fn lap(&mut self) -> Phase {
        let next = Self::start();
        let phase = Phase {
            seconds: next.started.duration_since(self.started).as_secs_f64(),
            read_bytes: next.read_bytes.saturating_sub(self.read_bytes),
        };
        *self = next;
        phase
    }
}

/// `rchar` of /proc/self/io: bytes read by system calls of all threads, from the page cache or the disk. 0 where it cannot be told.
fn read_bytes() -> u64 {
    let counts = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
