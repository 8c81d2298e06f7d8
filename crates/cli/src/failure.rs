//! What is told to the user when a command fails: what, why, what to do, and the exit status.
//!
//! Each error type of a library has one `From` in a file of `failure/`. The matches there name every variant: clippy's
//! `wildcard_enum_match_arm` makes a new variant an error of the build until somebody decides its status.

use std::fmt;
use std::io;

use serde::Serialize;

use crate::render::text::printable;
use crate::status::Status;

mod archive;
pub(crate) mod conversation;
mod demo;
mod locate;
mod open;
mod plan;
mod prune;
mod read;
mod rebuild;
mod retention;
mod salvage;
mod state;
mod undo;

/// What to do where another process holds a lock.
const WAIT_HINT: &str =
    "wait until the other program is done, or stop it; `headwater locate` names who has the file open";
/// What to do where the file is damaged.
const DAMAGED_HINT: &str = "run `headwater check`, then `headwater salvage` into a new file";
/// What a cancelled command left.
const CANCELLED_HINT: &str = "nothing was changed";
/// What to do where a session does not exist.
const NAME_A_SESSION: &str = "`headwater sessions` lists the sessions; nothing was changed";

/// A failed command. Carries no message content: only paths, ids, counts and words of this program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Failure {
    /// Stable name of the failure, for programs.
    pub(crate) code: &'static str,
    /// The exit status; JSON has it beside the error.
    #[serde(skip)]
    pub(crate) status: Status,
    /// What failed and why, as one sentence without a full stop, safe for a terminal: names of tables and files may hold anything.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// The reader of the output went away: there is nobody to tell, and nothing to say.
    #[serde(skip)]
    pub(crate) is_closed_pipe: bool,
}

impl Failure {
    /// A failure without a hint.
    pub(crate) fn new(status: Status, code: &'static str, message: impl fmt::Display) -> Self {
        let message = printable(&message.to_string()).into_owned();
        Self { code, status, message, hint: None, is_closed_pipe: false }
    }

    /// The same with a hint.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Arguments that the parser accepts and that make no sense.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Status::Usage, "usage", message)
            .with_hint("run the command with --help to see what it takes; nothing was changed")
    }

    /// A command that Ctrl-C stopped at a safe point.
    pub(crate) fn cancelled(message: impl fmt::Display) -> Self {
        Self::new(Status::Other, "cancelled", message).with_hint("run the same command again to go on")
    }

    /// What could not be written to standard output. A closed pipe (`headwater sessions | head`) is the reader's decision, and the
    /// command ends with `unread`.
    pub(crate) fn output(error: &io::Error, unread: Status) -> Self {
        let is_closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        let status = if is_closed_pipe { unread } else { Status::Other };
        Self {
            is_closed_pipe,
            ..Self::new(status, "output", format_args!("cannot write the output: {error}"))
        }
    }
}
