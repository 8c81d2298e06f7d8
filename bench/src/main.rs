#![forbid(unsafe_code)]
//! Measurements against named peers: `cargo run --release -p headwater-bench -- NAME`.
//!
//! Each measurement runs both sides in one run, by turns, and prints best and median with their ratio.

mod canonical;
mod conversation;
mod options;
mod parts;
mod side;
mod table;
mod upkeep;

use anyhow::{Result, bail};

/// A measurement by its name on the command line.
type Measurement = (&'static str, fn(&[String]) -> Result<()>);

const MEASUREMENTS: [Measurement; 3] =
    [("canonical", canonical::run), ("conversation", conversation::run), ("upkeep", upkeep::run)];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else { bail!("which measurement? {}", names()) };
    let Some((_, measure)) = MEASUREMENTS.iter().find(|(known, _)| known == name) else {
        bail!("no measurement of that name: {}", names())
    };
    measure(rest)
}

fn names() -> String {
    MEASUREMENTS.map(|(name, _)| name).join(", ")
}
