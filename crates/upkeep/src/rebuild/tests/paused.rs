//! A rebuild in a process of its own that stops at a step, so that a test can kill it there or act beside it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::sample::rebuild;
pub(super) use crate::fixture::paused::Paused;
use crate::fixture::paused::Pausing;
use crate::rebuild::{RebuildOptions, Step};

const DATABASE: &str = "HEADWATER_TEST_REBUILD";
const IN_PLACE: &str = "HEADWATER_TEST_IN_PLACE";

impl Paused {
    /// Starts a rebuild of `path` and waits until it stands at `step`.
    pub(super) fn at(step: Step, path: &Path, in_place: bool) -> Self {
        let mut environment = vec![(DATABASE, path)];
        if in_place {
            environment.push((IN_PLACE, Path::new("1")));
        }
        Self::start("rebuild::tests::paused::entry", &environment, step.name())
    }
}

#[test]
fn entry() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let options =
        RebuildOptions { in_place: std::env::var_os(IN_PLACE).is_some(), ..RebuildOptions::default() };
    let observer = Pausing::from_environment();
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
