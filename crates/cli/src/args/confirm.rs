//! Whether a change is confirmed beforehand.

use clap::Args;

/// The confirmation of a change.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Apply the plan without asking. Without it the question comes on a terminal, and elsewhere nothing is changed.
    #[arg(long)]
    pub(crate) yes: bool,
}
