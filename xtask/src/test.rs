//! `cargo xtask test`: every test.

use anyhow::Result;

use crate::requirements;
use crate::stage::{cargo, exists, root, stage};

/// The variable that turns the whole matrix against the real OpenCode on.
const FULL: &str = "HEADWATER_TEST_FULL";

/// Runs every test of the workspace, and the examples in its documentation.
pub(crate) fn run(is_full: bool) -> Result<()> {
    requirements::ensure()?;
    let mut tests = cargo();
    if exists("cargo-nextest") {
        tests.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
    } else {
        tests.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    }
    if is_full {
        tests.env(FULL, "1");
    }
    stage("tests", &mut tests)?;
    stage("examples in documentation", cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    let fuzz =
        ["test", "--locked", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target/fuzz"];
    stage("fuzz targets over their corpus", cargo().args(fuzz).current_dir(root()))
}
