//! What runs beside long work on the new file: early write-back, progress, and a look at whether the caller wants to stop.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rusqlite::{ErrorCode, InterruptHandle};

use crate::observer::{Observer, Progress, Unit};
use crate::os::start_write_back;
use crate::rebuild::error::{Doing, RebuildErrorKind};

/// Bytes that must have been added before they are sent to the disk.
const WRITE_BACK_BYTES: u64 = 1 << 20;

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Long work on one file.
pub(crate) struct Watch<'a> {
    /// The file that grows.
    pub(crate) path: &'a Path,
    /// What is said to be done.
    pub(crate) phase: &'static str,
    /// Bytes expected.
    pub(crate) total: Option<u64>,
    /// Who is told.
    pub(crate) observer: &'a dyn Observer,
    /// What to interrupt when the caller wants to stop.
    pub(crate) interrupt: InterruptHandle,
}

impl Watch<'_> {
    /// Does `work`, and sends what it writes to the disk as it grows: the final sync then takes 0.01 s instead of 0.36 (MEASURED).
    pub(crate) fn during<T>(
        &self,
        work: impl FnOnce() -> Result<T, RebuildErrorKind>,
    ) -> Result<T, RebuildErrorKind> {
        let file = File::open(self.path).doing("opening the new file")?;
        let done = AtomicBool::new(false);
        let stopped = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            let watcher = scope.spawn(|| self.look(&file, &done, &stopped));
            let result = work();
            done.store(true, Ordering::Release);
            watcher.thread().unpark();
            result
        });
        if stopped.load(Ordering::Acquire) { Err(RebuildErrorKind::Cancelled) } else { result }
    }

    fn look(&self, file: &File, done: &AtomicBool, stopped: &AtomicBool) {
        let mut sent = file.metadata().map_or(0, |found| found.len());
        while !done.load(Ordering::Acquire) {
            thread::park_timeout(LOOK_EVERY);
            let length = file.metadata().map_or(0, |found| found.len());
            if length >= sent + WRITE_BACK_BYTES {
                start_write_back(file, sent, length - sent);
                sent = length;
                self.observer.progress(Progress {
                    phase: self.phase,
                    done: length,
                    total: self.total,
                    unit: Unit::Bytes,
                });
            }
            if self.observer.is_cancelled() {
                stopped.store(true, Ordering::Release);
                self.interrupt.interrupt();
            }
        }
    }
}

/// Does `work`, and interrupts the connections behind `interrupts` while the caller wants to stop. What ended all the same has ended.
///
/// What an interrupted statement ran inside itself (a pragma read as a table) fails with the general code, not with that of an interrupt.
pub(crate) fn stoppable<T>(
    observer: &dyn Observer,
    interrupts: &[InterruptHandle],
    work: impl FnOnce() -> Result<T, RebuildErrorKind>,
) -> Result<T, RebuildErrorKind> {
    let done = AtomicBool::new(false);
    let was_interrupted = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                // Again and again: a call between two statements is forgotten.
                if observer.is_cancelled() {
                    was_interrupted.store(true, Ordering::Release);
                    interrupts.iter().for_each(InterruptHandle::interrupt);
                }
                thread::park_timeout(LOOK_EVERY);
            }
        });
        let result = work();
        done.store(true, Ordering::Release);
        watcher.thread().unpark();
        result
    });
    match result {
        Err(RebuildErrorKind::Sqlite { source, .. })
            if was_interrupted.load(Ordering::Acquire)
                && source.sqlite_error_code() == Some(ErrorCode::Unknown) =>
        {
            Err(RebuildErrorKind::Cancelled)
        }
        result => result,
    }
}
