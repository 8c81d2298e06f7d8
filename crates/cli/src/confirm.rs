//! The question before anything is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::app::App;
use crate::failure::Failure;
use crate::output::Output;
use crate::status::Status;

/// Lets the command go on only with `--yes`, or where a person at a terminal answers yes to `question`.
///
/// The plan must be written before. Where nobody reads it any more, the command must not go on either.
pub(crate) fn confirm(app: &mut App, yes: bool, question: &str) -> Result<(), Failure> {
    ensure_read(&mut app.out)?;
    if yes {
        return Ok(());
    }
    let is_interactive = io::stdin().is_terminal() && io::stderr().is_terminal() && app.out.is_terminal();
    if app.out.is_json() || !is_interactive {
        return Err(Failure::new(Status::Usage, "not-confirmed", "this was the plan; nothing was changed")
            .with_hint("run the same command with --yes to apply it"));
    }
    let answer = app.cancel.while_asking(|| ask(question));
    match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(Status::Other, "declined", "nothing was changed")),
        Err(error) => {
            let message = format_args!("cannot read the answer: {error}; nothing was changed");
            Err(Failure::new(Status::Other, "not-confirmed", message))
        }
    }
}

/// Hands the plan to its reader, before a command that `--yes` has confirmed goes on.
pub(crate) fn ensure_read(out: &mut Output) -> Result<(), Failure> {
    out.flush().map_err(unread)
}

/// The failure of a command whose plan could not be written: unlike a list that nobody reads to its end, this is not done.
fn unread(failure: Failure) -> Failure {
    if !failure.is_closed_pipe {
        return failure;
    }
    Failure::new(Status::Other, "plan-unread", "the reader of the plan went away; nothing was changed")
}

fn ask(question: &str) -> io::Result<bool> {
    let mut terminal = io::stderr();
    write!(terminal, "\n{question} [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
