//! Progress of long work, on standard error and only on a terminal.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headwater_upkeep::observer::{Observer, Progress, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cancel::Cancel;
use crate::clock::Stopwatch;

/// Work that is over sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(400);

/// Shows progress and passes Ctrl-C on to an operation.
pub(crate) struct Watch {
    cancel: Cancel,
    bar: ProgressBar,
    shown: Mutex<Option<Shown>>,
    begun: Stopwatch,
    is_terminal: bool,
    has_ended: AtomicBool,
}

/// What the bar was set up for; its style is parsed again only where one of these changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    phase: &'static str,
    unit: Unit,
    total: Option<u64>,
}

impl Watch {
    /// A watch whose bar is visible where standard error is a terminal, once the work has taken a moment.
    pub(crate) fn new(cancel: Cancel) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self {
            cancel,
            bar,
            shown: Mutex::new(None),
            begun: Stopwatch::start(),
            is_terminal: io::stderr().is_terminal(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// A watch that only passes Ctrl-C on.
    pub(crate) fn silent(cancel: Cancel) -> Self {
        Self { is_terminal: false, ..Self::new(cancel) }
    }

    /// Hides the bar for good: before results go to the same terminal, and at the end.
    pub(crate) fn end(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            self.bar.finish_and_clear();
        }
    }

    /// Takes the bar off the terminal while `write` writes there.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    fn is_due(&self) -> bool {
        self.is_terminal && !self.has_ended.load(Ordering::Relaxed) && self.begun.elapsed() >= PATIENCE
    }

    fn set_up(&self, next: Shown) {
        let Ok(mut shown) = self.shown.lock() else { return };
        if *shown == Some(next) {
            return;
        }
        if let Ok(style) = ProgressStyle::with_template(template(next.unit, next.total.is_some())) {
            self.bar.set_style(style);
        }
        match next.total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        if shown.is_none_or(|shown| shown.phase != next.phase) {
            self.bar.reset();
            self.bar.set_message(next.phase);
        }
        if shown.is_none() {
            // Only a bar that says something is drawn.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        *shown = Some(next);
    }
}

impl Observer for Watch {
    fn progress(&self, progress: Progress) {
        if self.is_due() {
            self.set_up(Shown { phase: progress.phase, unit: progress.unit, total: progress.total });
            self.bar.set_position(progress.done);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

const fn template(unit: Unit, has_total: bool) -> &'static str {
    match (unit, has_total) {
        (Unit::Bytes, true) => "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {eta}",
        (Unit::Bytes, false) => "{spinner} {msg} {binary_bytes}",
        (Unit::Rows, true) => "{msg} {wide_bar} {human_pos}/{human_len} rows {eta}",
        (Unit::Rows, false) => "{spinner} {msg} {human_pos} rows",
        (Unit::Messages, true) => "{msg} {wide_bar} {human_pos}/{human_len} messages {eta}",
        (Unit::Messages, false) => "{spinner} {msg} {human_pos} messages",
        (Unit::Sessions, true) => "{msg} {wide_bar} {human_pos}/{human_len} sessions {eta}",
        (Unit::Sessions, false) => "{spinner} {msg} {human_pos} sessions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_valid() {
        for unit in [Unit::Bytes, Unit::Rows, Unit::Messages, Unit::Sessions] {
            for has_total in [false, true] {
                let text = template(unit, has_total);
                assert!(ProgressStyle::with_template(text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn a_cancelled_command_cancels_its_operation() {
        let cancel = Cancel::default();
        let watch = Watch::new(cancel.clone());
        assert!(!watch.is_cancelled());
        cancel.cancel();
        assert!(watch.is_cancelled());
    }
}
