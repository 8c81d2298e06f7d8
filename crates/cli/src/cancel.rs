//! Ctrl-C: the first asks the operation to stop at its next safe point, the second ends the process at once.

use std::io::{self, Write};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Exit status of a process that Ctrl-C ended at once: 128 + SIGINT, as a shell reports it.
const ABORTED: i32 = 130;

const RUNNING: u8 = 0;
/// A question waits for an answer: nothing runs, so the first Ctrl-C ends the process.
const ASKING: u8 = 1;
const CANCELLED: u8 = 2;

/// Whether the user wants the running operation to stop. Clones share one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicU8>);

impl Cancel {
    /// Installs the handler of Ctrl-C for this process. Where the system refuses, Ctrl-C ends the process as it does by default.
    pub(crate) fn install() -> Self {
        let cancel = Self::default();
        let shared = cancel.clone();
        ctrlc::set_handler(move || shared.interrupt()).ok();
        cancel
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CANCELLED
    }

    /// Sets the state that a first Ctrl-C sets.
    #[cfg(test)]
    pub(crate) fn cancel(&self) {
        self.0.store(CANCELLED, Ordering::Relaxed);
    }

    /// Runs `question`, during which Ctrl-C ends the process at once.
    pub(crate) fn while_asking<T>(&self, question: impl FnOnce() -> T) -> T {
        self.swap_if(RUNNING, ASKING);
        let answer = question();
        self.swap_if(ASKING, RUNNING);
        answer
    }

    fn swap_if(&self, from: u8, to: u8) {
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    fn interrupt(&self) {
        let before = self.0.swap(CANCELLED, Ordering::Relaxed);
        let text = match before {
            RUNNING => "\nstopping at the next safe point; press Ctrl-C again to stop at once",
            ASKING => "\nnothing was changed",
            _ => "\nstopped",
        };
        writeln!(io::stderr(), "{text}").ok();
        if before != RUNNING {
            process::exit(ABORTED);
        }
    }
}
