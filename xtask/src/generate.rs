//! `cargo xtask generate`: files that are derived from code. A test of the crate that owns a file compares it; with `HEADWATER_GENERATE`
//! the same test writes it.

use anyhow::Result;

use crate::stage::{cargo, stage};

/// Writes every generated file.
pub(crate) fn run() -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "headwater", "--bin", "headwater", "reference"]);
    stage("docs/reference/cli.md", command.env("HEADWATER_GENERATE", "1"))?;
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "headwater-wire", "--test", "vectors", "committed"]);
    stage("schemas/vectors/canonical.json", command.env("HEADWATER_GENERATE", "1"))
}
