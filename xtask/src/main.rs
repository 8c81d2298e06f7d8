#![forbid(unsafe_code)]
//! The repository's commands, the same on a desk and in CI: `cargo xtask run`, `cargo xtask test`, and what `--help` lists.
//!
//! Depends on nothing of the workspace, so that the first command on a fresh clone is built in seconds.
#![expect(clippy::print_stdout, reason = "these commands talk to the person who calls them")]

mod bench;
mod fuzz;
mod generate;
mod lint;
mod requirements;
mod run;
mod stage;
mod test;
#[cfg(test)]
mod tidy;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask run [-- ARGS]     build headwater and run it with ARGS; without ARGS: its stats on your OpenCode database,
                              or on a sample database where you have none
cargo xtask test [--full]     every test; --full adds the whole matrix against the real OpenCode
cargo xtask lint              format, clippy, dependencies, documentation
cargo xtask ci                lint, then test
cargo xtask bench [ARGS]      measure against named peers; prints ratios
cargo xtask fuzz [SECONDS]    every fuzz target for SECONDS (default 5)
cargo xtask generate          write the generated files again (docs/reference/cli.md)";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    env::set_current_dir(stage::root())?;
    match arguments.as_slice() {
        ["run"] => return run::stats(),
        ["run", "--", rest @ ..] | ["run", rest @ ..] => return run::pass_on(rest),
        ["test"] => test::run(false)?,
        ["test", "--full"] => test::run(true)?,
        ["lint"] => lint::run()?,
        ["ci"] => {
            lint::run()?;
            test::run(false)?;
        }
        ["bench", rest @ ..] => bench::run(rest)?,
        ["fuzz"] => fuzz::run("5")?,
        ["fuzz", seconds] => fuzz::run(seconds)?,
        ["generate"] => generate::run()?,
        [] | ["help" | "--help" | "-h"] => println!("{HELP}"),
        unknown => bail!("unknown command `{}`\n\n{HELP}", unknown.join(" ")),
    }
    Ok(ExitCode::SUCCESS)
}
