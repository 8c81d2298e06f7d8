//! How a caller watches and stops long work.

/// Where a piece of long work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, as a short lower-case phrase ("copying rows").
    pub phase: &'static str,
    /// Units done in this phase.
    pub done: u64,
    /// Units in all, where known before the end.
    pub total: Option<u64>,
    /// What is counted.
    pub unit: Unit,
}

/// What [`Progress`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Rows.
    Rows,
    /// Messages.
    Messages,
    /// Sessions.
    Sessions,
}

/// What the caller of a long operation sees and may answer. Every method has a default that does nothing.
///
/// Operations call it between units of work, never while they hold a write lock longer than the call itself takes.
pub trait Observer: Sync {
    /// Work has moved on. Called at most a few times per mebibyte.
    fn progress(&self, progress: Progress) {
        let _ = progress;
    }

    /// Whether the caller wants the operation to stop at the next safe point. What is committed stays committed.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// The operation has completed the step of this name and not begun the next. Each operation that writes names its steps in
    /// an enum of its own and lists them in its protocol table (`docs/spec/`); tests kill or disturb the process exactly here.
    fn reached(&self, step: &'static str) {
        let _ = step;
    }
}

/// An observer that watches nothing and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
