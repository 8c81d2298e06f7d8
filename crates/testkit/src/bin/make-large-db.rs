#![forbid(unsafe_code)]
//! Writes a large database of the reference mix: `make-large-db --gib 2 --out big.db [--seed 1] [--giant-mib 458]`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use headwater_testkit::large::{Options, write};

const USAGE: &str = "usage: make-large-db --out FILE [--gib SIZE] [--seed N] [--giant-mib SIZE]";

fn main() -> ExitCode {
    let Some((path, options)) = parse(std::env::args().skip(1)) else {
        // Nothing is left to do where even this cannot be written.
        let _unwritten = writeln!(std::io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    let summary = write(&path, &options);
    match writeln!(std::io::stdout(), "{summary:#?}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size from the command line")]
fn parse(mut arguments: impl Iterator<Item = String>) -> Option<(PathBuf, Options)> {
    let mut options = Options::of_bytes(1 << 30);
    let mut path = None;
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--out" => path = Some(PathBuf::from(value)),
            "--gib" => options.bytes = (value.parse::<f64>().ok()? * f64::from(1 << 30)) as u64,
            "--seed" => options.seed = value.parse().ok()?,
            "--giant-mib" => options.giant_bytes = value.parse::<usize>().ok()? << 20,
            _ => return None,
        }
    }
    Some((path?, options))
}
