//! A rebuild in a process of its own that stops at a step, so that a test can kill it there or act beside it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use super::sample::rebuild;
use crate::fixture::test_process;
use crate::observer::{Observer, Progress};
use crate::rebuild::{RebuildOptions, Step};

const DATABASE: &str = "HEADWATER_TEST_REBUILD";
const PAUSE: &str = "HEADWATER_TEST_PAUSE";
const IN_PLACE: &str = "HEADWATER_TEST_IN_PLACE";

/// A rebuild that has reached a step and waits.
pub(super) struct Paused {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Paused {
    /// Starts a rebuild of `path` and waits until it stands at `step`.
    pub(super) fn at(step: Step, path: &Path, in_place: bool) -> Self {
        let mut command = test_process("rebuild::tests::paused::entry");
        command.env(DATABASE, path).env(PAUSE, step.name()).stdin(Stdio::piped()).stdout(Stdio::piped());
        if in_place {
            command.env(IN_PLACE, "1");
        }
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut paused = Self { child, output };
        assert_eq!(paused.line(), format!("reached {}", step.name()));
        paused
    }

    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the rebuild ended");
            if let Some((_, said)) = line.trim_end().split_once("said: ") {
                return said.to_owned();
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on.
    pub(super) fn resume(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Lets it go on to its end and returns what came of it.
    pub(super) fn finish(mut self) -> String {
        self.resume();
        let outcome = self.line();
        assert!(self.child.wait().unwrap().success());
        outcome
    }

    /// `kill -9`.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // Both fail only where the process has ended and been waited for.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

struct Pausing(String);

impl Observer for Pausing {
    fn reached(&self, step: &'static str) {
        if step == self.0 {
            println!("said: reached {step}");
            let mut go = [0];
            std::io::stdin().read_exact(&mut go).unwrap();
        }
    }

    fn progress(&self, progress: Progress) {
        if progress.phase.starts_with("waiting") && progress.done == 1 {
            println!("said: waiting");
        }
    }
}

#[test]
fn entry() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let options =
        RebuildOptions { in_place: std::env::var_os(IN_PLACE).is_some(), ..RebuildOptions::default() };
    let observer = Pausing(std::env::var(PAUSE).unwrap());
    match rebuild(Path::new(&path), &options, &observer) {
        Ok(report) => println!("said: done {:?}", report.way),
        Err(error) => println!("said: {error}"),
    }
}

/// The file under our temporary name.
pub(super) fn temporary_of(path: &Path) -> PathBuf {
    let found = crate::rebuild::temporary::leftovers(path).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// Returns once somebody waits in `open(2)` for the leased file at `path`.
pub(super) fn wait_for_held_open(path: &Path) {
    let inode = format!(":{} ", fs::metadata(path).unwrap().ino());
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        if locks
            .lines()
            .any(|line| line.contains("LEASE") && line.contains("BREAKING") && line.contains(&inode))
        {
            return;
        }
        assert!(Instant::now() < deadline, "nobody waits for the lease: {locks}");
        std::thread::yield_now();
    }
}
