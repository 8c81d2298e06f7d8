#![forbid(unsafe_code)]
//! The `headwater` command line: parses arguments, calls `headwater-upkeep`, renders what it answers.
//!
//! Every verb is one file in `commands/`. A verb never prints by itself: [`output::Output`] knows whether a person or a program
//! reads. What failed becomes a [`failure::Failure`] with one exit status, and `app` reports it in one place.

mod app;
mod args;
mod cancel;
mod clock;
mod commands;
mod confirm;
mod failure;
mod output;
mod progress;
#[cfg(test)]
mod reference;
mod render;
mod status;

use std::process::ExitCode;

fn main() -> ExitCode {
    app::run()
}
