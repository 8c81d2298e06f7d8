//! Ctrl-C and what else asks a program to end: the first time the operation is asked to stop at its next safe point, the second ends
//! the process at once.

use std::fs;
use std::io::{self, Write};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// Ctrl-C, `kill` and service managers, and a terminal that goes away.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Exit status of a process that a signal ended, less the number of the signal, as a shell reports it.
const SIGNALLED: i32 = 128;

const RUNNING: u8 = 0;
/// A question waits for an answer: nothing runs, so the first signal ends the process.
const ASKING: u8 = 1;
const CANCELLED: u8 = 2;

/// Whether the user wants the running operation to stop. Clones share one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicU8>);

impl Cancel {
    /// Listens for the signals that end this process. Where the system refuses, they end it as they do by default.
    ///
    /// A signal that was ignored when the process began stays ignored: `nohup` means the terminal that goes away.
    pub(crate) fn install() -> Self {
        let cancel = Self::default();
        keep_limits_as_errors();
        let ignored = ignored_signals();
        let heeded = ENDING.iter().filter(|signal| ignored >> (**signal - 1) & 1 == 0);
        if let Ok(mut signals) = Signals::new(heeded) {
            let shared = cancel.clone();
            thread::spawn(move || signals.forever().for_each(|signal| shared.interrupt(signal)));
        }
        cancel
    }

    /// Whether the operation is to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CANCELLED
    }

    /// Sets the state that a first Ctrl-C sets.
    #[cfg(test)]
    pub(crate) fn cancel(&self) {
        self.0.store(CANCELLED, Ordering::Relaxed);
    }

    /// Runs `question`, during which a signal ends the process at once.
    pub(crate) fn while_asking<T>(&self, question: impl FnOnce() -> T) -> T {
        self.swap_if(RUNNING, ASKING);
        let answer = question();
        self.swap_if(ASKING, RUNNING);
        answer
    }

    fn swap_if(&self, from: u8, to: u8) {
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    fn interrupt(&self, signal: i32) {
        let before = self.0.swap(CANCELLED, Ordering::Relaxed);
        let text = match before {
            RUNNING if signal == SIGINT => {
                "\nstopping at the next safe point; press Ctrl-C again to stop at once"
            }
            RUNNING => "\nstopping at the next safe point",
            ASKING => "\nnothing was changed",
            _ => "\nstopped",
        };
        writeln!(io::stderr(), "{text}").ok();
        if before != RUNNING {
            process::exit(SIGNALLED + signal);
        }
    }
}

/// A write beyond the limit on the size of files (`ulimit -f`) ends a process by default, half-written files and all. Handled, it is
/// an error of that write, as a full disk is.
fn keep_limits_as_errors() {
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).ok();
}

/// The signals that this process began with ignored, as a mask in which signal 1 is the lowest bit; none where the system does not say.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}
