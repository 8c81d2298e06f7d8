//! Lets a caller watch and stop one long statement of SQLite.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rusqlite::Connection;

use crate::observer::{Observer, Progress, Unit};
use crate::reading::ReadError;

/// Steps of SQLite's machine, or pages of its page check, between two looks.
const STEPS: i32 = 1000;

/// How often the caller is asked.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work`, which runs one long statement on `connection`; `phase` and `total` go into the progress reports.
///
/// SQLite calls back on the working thread with what must outlive it, and the observer need not: so a second thread carries news
/// between the two.
pub(super) fn watched<T>(
    connection: &Connection,
    observer: &dyn Observer,
    phase: &'static str,
    total: Option<u64>,
    work: impl FnOnce() -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let stop = Arc::new(AtomicBool::new(observer.is_cancelled()));
    let done = Arc::new(AtomicU64::new(0));
    let (stop_seen, done_counted) = (Arc::clone(&stop), Arc::clone(&done));
    connection.progress_handler(
        STEPS,
        Some(move || {
            done_counted.fetch_add(STEPS.unsigned_abs().into(), Ordering::Relaxed);
            stop_seen.load(Ordering::Relaxed)
        }),
    )?;
    let (finished, wait) = channel::<()>();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            while wait.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let done = done.load(Ordering::Relaxed);
                observer.progress(Progress { phase, done, total, unit: Unit::Rows });
                stop.store(observer.is_cancelled(), Ordering::Relaxed);
            }
        });
        let outcome = work();
        drop(finished);
        outcome
    });
    connection.progress_handler(0, None::<fn() -> bool>)?;
    outcome
}
