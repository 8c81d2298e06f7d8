//! Runs of the program in an environment of their own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The lines of standard output as JSON.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// The last line of standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        self.json_lines().pop().expect("at least one line of JSON")
    }

    /// Panics unless the run ended with `status`.
    pub(crate) fn expect_status(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().expect("no signal ended it"),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

/// The path of the program under test.
pub(crate) fn path() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("headwater").to_path_buf()
}

/// The program in an empty environment whose home is `home`, so that nothing of the machine's own reaches a test.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(path());
    command
        .env_clear()
        .env("HOME", home)
        .env("TZ", "UTC")
        .env("PATH", "/usr/bin:/bin")
        .current_dir(home)
        .stdin(Stdio::null());
    command
}

/// Runs the program with `arguments` in the home folder `home`.
pub(crate) fn run<S: AsRef<OsStr>>(home: &Path, arguments: impl IntoIterator<Item = S>) -> Run {
    command(home).args(arguments).output().expect("the program starts").into()
}
