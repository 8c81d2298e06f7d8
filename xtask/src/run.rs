//! `cargo xtask run`: the program itself.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{self, Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::stage::{cargo, stage, status};

/// Runs headwater with `arguments` and ends as it ends.
pub(crate) fn pass_on(arguments: &[&str]) -> Result<ExitCode> {
    let mut command = Command::new(binary()?);
    // Relative paths are meant from where the person stands.
    if let Some(folder) = env::var_os("PWD").filter(|folder| PathBuf::from(folder).is_dir()) {
        command.current_dir(folder);
    }
    let ended = status(command.args(arguments))?;
    Ok(ExitCode::from(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Shows the stats of the user's database, or those of a sample.
pub(crate) fn stats() -> Result<ExitCode> {
    let located = status(Command::new(binary()?).arg("locate").stdout(Stdio::null()).stderr(Stdio::null()))?;
    if located.success() {
        return pass_on(&["stats"]);
    }
    let folder = env::temp_dir().join(format!("headwater-demo-{}", process::id()));
    println!("There is no OpenCode database here; this is a sample (the folder may be deleted).");
    let database = folder.join("opencode.db");
    stage("sample", Command::new(binary()?).arg("demo").arg(&folder))?;
    let database = database.to_str().context("the temporary folder is not UTF-8")?;
    fs::metadata(database)?;
    pass_on(&["stats", "--db", database])
}

/// The release build of headwater, made now where it is not up to date.
fn binary() -> Result<PathBuf> {
    let ended = status(cargo().args(["build", "--release", "--package", "headwater"]))?;
    if !ended.success() {
        anyhow::bail!("headwater does not build");
    }
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::stage::root().join("target"), PathBuf::from);
    Ok(target.join("release/headwater"))
}
