//! `cargo xtask fuzz`: every fuzz target for a while.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::stage::{cargo, exists, root, stage};

/// Runs each target of `fuzz/` for `seconds`.
pub(crate) fn run(seconds: &str) -> Result<()> {
    let seconds: u32 = seconds.parse().context("the number of seconds is not a number")?;
    if !exists("cargo-fuzz") {
        bail!("cargo-fuzz is not on PATH; install it: cargo install --locked cargo-fuzz");
    }
    let folder = root().join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            targets.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    targets.sort();
    for target in targets {
        let mut command = cargo();
        command.args(["fuzz", "run", &target, "--", &format!("-max_total_time={seconds}")]);
        // The sanitizer's flags exist in the stable compiler and are locked behind this variable.
        stage(&format!("fuzz {target}"), command.env("RUSTC_BOOTSTRAP", "1"))?;
    }
    Ok(())
}
