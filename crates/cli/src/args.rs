//! The arguments, each defined once.

use std::path::PathBuf;

use clap::Parser;

use crate::commands::Command;

pub(crate) mod age;
pub(crate) mod confirm;
pub(crate) mod output;
pub(crate) mod policy;
pub(crate) mod selection;
pub(crate) mod state;
pub(crate) mod target;

/// Keeps coding-agent conversations small, searchable and live: storage care for OpenCode databases.
///
/// Shows what eats the space, finds old answers, cuts tool output and reasoning out of finished messages, drops redundant event
/// copies and gives the disk space back. Text of a conversation is never removed, and nothing changes before a plan was shown and
/// confirmed.
#[derive(Debug, Parser)]
#[command(name = "headwater", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// The database [default: where OpenCode keeps it, see `headwater locate`].
    #[arg(long, value_name = "PATH", global = true, help_heading = "Global options")]
    pub(crate) db: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: output::OutputArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Exit status: 0 done, 1 other failure, 2 usage or not confirmed, 3 busy or blocked, 4 nothing to do or nothing found, \
5 damaged or unsupported.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
