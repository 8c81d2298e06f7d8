#![forbid(unsafe_code)]
//! Measurements against named peers: `cargo run --release -p headwater-bench -- NAME`.
//!
//! Each measurement runs both sides in one run, by turns, and prints best and median with their ratio.

mod canonical;

use anyhow::{Result, bail};

/// A measurement by its name on the command line.
type Measurement = (&'static str, fn() -> Result<()>);

const MEASUREMENTS: [Measurement; 1] = [("canonical", canonical::run)];

fn main() -> Result<()> {
    let Some(name) = std::env::args().nth(1) else { bail!("which measurement? {}", names()) };
    let Some((_, measure)) = MEASUREMENTS.iter().find(|(known, _)| *known == name) else {
        bail!("no measurement of that name: {}", names())
    };
    measure()
}

fn names() -> String {
    MEASUREMENTS.map(|(name, _)| name).join(", ")
}
