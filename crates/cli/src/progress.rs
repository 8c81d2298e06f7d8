//! Progress of long work, on standard error and only on a terminal.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use headwater_upkeep::observer::{Observer, Progress, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cancel::Cancel;

/// Shows progress and passes Ctrl-C on to an operation.
pub(crate) struct Watch {
    cancel: Cancel,
    bar: ProgressBar,
    shown: Mutex<Option<Shown>>,
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
    /// A watch whose bar is visible where standard error is a terminal.
    pub(crate) fn new(cancel: Cancel) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self { cancel, bar, shown: Mutex::new(None), has_ended: AtomicBool::new(false) }
    }

    /// Hides the bar for good: before results go to the same terminal, and at the end.
    pub(crate) fn end(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            self.bar.finish_and_clear();
        }
    }

    fn set_up(&self, next: Shown) {
        let Ok(mut shown) = self.shown.lock() else { return };
        if *shown == Some(next) {
            return;
        }
        if let Ok(style) = ProgressStyle::with_template(template(next.unit, next.total.is_some())) {
            self.bar.set_style(style);
        }
        if shown.is_none_or(|shown| shown.phase != next.phase) {
            self.bar.reset();
            self.bar.set_message(next.phase);
        }
        match next.total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        *shown = Some(next);
    }
}

impl Observer for Watch {
    fn progress(&self, progress: Progress) {
        if !self.bar.is_hidden() && !self.has_ended.load(Ordering::Relaxed) {
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
