//! `headwater completions`: completion scripts.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::app::App;
use crate::args::Cli;
use crate::failure::Failure;
use crate::status::Status;

/// Write a completion script for a shell to standard output.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: headwater completions bash > ~/.local/share/bash-completion/completions/headwater"
)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "headwater", &mut script);
    super::write_document(app, &script)
}
