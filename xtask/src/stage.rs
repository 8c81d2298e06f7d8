//! Running other programs, one stage after the other, with the time each took.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The `cargo` that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs `command`, which must succeed, under a headline with its time.
pub(crate) fn stage(name: &str, command: &mut Command) -> Result<()> {
    println!("== {name}: {}", shown(command));
    let start = Instant::now();
    let ended = status(command)?;
    println!("== {name}: {} s", start.elapsed().as_secs());
    if !ended.success() {
        bail!("{name} failed: {} ({ended})", shown(command));
    }
    Ok(())
}

/// Runs `command` and answers how it ended.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot run {}", shown(command)))
}

/// Whether a program of this name can be run.
pub(crate) fn exists(program: &str) -> bool {
    exists_in(&std::env::var_os("PATH").unwrap_or_default(), program)
}

/// Whether a program of this name is in a folder of `path`.
pub(crate) fn exists_in(path: &OsStr, program: &str) -> bool {
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let first = Path::new(&words[0])
        .file_name()
        .map_or_else(|| words[0].clone(), |name| name.to_string_lossy().into_owned());
    std::iter::once(first).chain(words[1..].iter().cloned()).collect::<Vec<_>>().join(" ")
}
