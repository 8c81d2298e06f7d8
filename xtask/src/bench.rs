//! `cargo xtask bench`: measurements against named peers.

use anyhow::Result;

use crate::stage::{cargo, stage};

/// Passes `arguments` to the release build of `bench`.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    // The program that is measured is built the same way, beside it.
    stage(
        "build",
        cargo().args(["build", "--release", "--package", "headwater", "--package", "headwater-bench"]),
    )?;
    stage(
        "bench",
        cargo().args(["run", "--quiet", "--release", "--package", "headwater-bench", "--"]).args(arguments),
    )
}
