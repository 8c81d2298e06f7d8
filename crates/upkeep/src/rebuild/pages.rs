//! `SQLite`'s backup run to its end, page by page, watched and stoppable.

use rusqlite::backup::{Backup, StepResult};

use crate::observer::{Observer, Progress, Unit};
use crate::rebuild::error::{Doing, RebuildErrorKind};

/// Pages copied between two reports of progress.
const PAGES_PER_STEP: i32 = 2048;

/// Copies every page. `phase` names the work, in reports of progress and in errors; `busy` says what it means that a lock is in the way.
pub(crate) fn copy_all(
    backup: &Backup<'_, '_>,
    phase: (&'static str, &'static str),
    busy: impl Fn() -> RebuildErrorKind,
    observer: &dyn Observer,
) -> Result<(), RebuildErrorKind> {
    let (shown, doing) = phase;
    loop {
        let step = backup.step(PAGES_PER_STEP).doing(doing)?;
        let progress = backup.progress();
        let pages = |count: std::ffi::c_int| u64::try_from(count).unwrap_or(0);
        observer.progress(Progress {
            phase: shown,
            done: pages(progress.pagecount - progress.remaining),
            total: Some(pages(progress.pagecount)),
            unit: Unit::Rows,
        });
        if step == StepResult::Done {
            return Ok(());
        }
        if step != StepResult::More {
            return Err(busy());
        }
        if observer.is_cancelled() {
            return Err(RebuildErrorKind::Cancelled);
        }
    }
}
