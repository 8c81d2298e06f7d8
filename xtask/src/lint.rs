//! `cargo xtask lint`: what CI refuses besides failing tests.

use std::process::Command;

use anyhow::{Result, bail};

use crate::stage::{cargo, exists, stage};

/// Format, clippy, dependencies and documentation, the fastest first.
pub(crate) fn run() -> Result<()> {
    for (program, install) in [
        ("cargo-deny", "cargo install --locked cargo-deny --no-default-features"),
        ("cargo-machete", "cargo install --locked cargo-machete"),
    ] {
        if !exists(program) {
            bail!("{program} is not on PATH; install it: {install}");
        }
    }
    stage("format", cargo().args(["fmt", "--all", "--check"]))?;
    // By its own name: called through cargo from within cargo it takes `machete` for a folder.
    stage("unused dependencies", &mut Command::new("cargo-machete"))?;
    stage(
        "licences, bans, sources",
        cargo().args(["deny", "--log-level", "error", "check", "bans", "licenses", "sources"]),
    )?;
    stage(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    )?;
    let mut documentation = cargo();
    documentation.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    stage("documentation", &mut documentation)
}
