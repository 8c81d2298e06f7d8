//! How results are written.

use clap::{Args, ValueEnum};

/// Options that every verb has.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write JSON, one object per line; the last line is the result or the error.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// When to use colour; `auto` heeds `NO_COLOR` and writes none into a pipe.
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", help_heading = "Global options")]
    pub(crate) color: ColorWhen,
}

/// When output has escape codes for colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
