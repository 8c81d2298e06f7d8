//! A disk that is full from one step on: no file grows any more.

use std::process::{Command, Stdio};

use super::*;
use crate::undo::Archive;

const DATABASE: &str = "HEADWATER_TEST_FULL_DATABASE";
const REQUEST: &str = "HEADWATER_TEST_FULL_REQUEST";
const STEP: &str = "HEADWATER_TEST_FULL_STEP";

/// Lets no file of this process grow from a step on.
struct Full(String);

impl Observer for Full {
    fn reached(&self, step: &'static str) {
        if step == self.0 {
            let none = rustix::process::Rlimit { current: Some(0), maximum: None };
            rustix::process::setrlimit(rustix::process::Resource::Fsize, none).unwrap();
        }
    }
}

/// The process whose disk is full; passes at once when run as an ordinary test.
#[test]
fn full_disk_process_entry() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let request: PruneRequest = serde_json::from_str(&std::env::var(REQUEST).unwrap()).unwrap();
    let observer = Full(std::env::var(STEP).unwrap());
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(&path)).unwrap();
    let identity = DatabaseIdentity::read(database.connection(), database.file()).unwrap();
    let mut archive = Archive::open(&path.with_file_name("undo.zst"), &identity).unwrap();
    let now = UnixMillis::new(NOW + 60_000);
    let outcome = Pruner::new(&database, &mut state, &NoServers, PruneOptions::immediate(), now, &observer)
        .unwrap()
        .with_archive(&mut archive)
        .message(&request, None);
    let error = outcome.unwrap_err().to_string();
    assert!(!error.contains("CANARY"), "{error}");
    println!("failed: {error}");
}

/// Whether the prune failed in a process whose disk is full from `step` on.
fn fails_at(step: Step, path: &Path, request: &PruneRequest) -> bool {
    // The signal that comes with the limit must be ignored by somebody who may say so: the shell.
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["prune::tests::disk_full::full_disk_process_entry", "--exact", "--nocapture", "--quiet"])
        .env(DATABASE, path)
        .env(REQUEST, serde_json::to_string(request).unwrap())
        .env(STEP, step.name())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.success()
}

#[test]
fn a_full_disk_removes_nothing_or_loses_no_receipt() {
    for (storage, layout) in STORAGES {
        for step in [Step::Resolved, Step::Archived, Step::Intended, Step::Committed] {
            let folder = tempfile::tempdir().unwrap();
            let path = build(folder.path(), storage, layout);
            let request = request(&path, &[0, 1]);
            let before = dump(&path);
            let is_in_kv = storage == Storage::V2 && layout == Layout::V2;
            // With receipts in the database itself there is nothing to write after the commit, and no claim before.
            let is_reached = !is_in_kv || step == Step::Archived;
            assert_eq!(fails_at(step, &path, &request), is_reached, "{storage:?} {step:?}");
            let is_done = step == Step::Committed || !is_reached;
            assert_eq!(dump(&path) != before, is_done, "{storage:?} {step:?}");

            let first = receipt(prune(&path, &request));
            assert_eq!(receipt(prune(&path, &request)), first);
            assert_eq!((preview(&path).items.len(), receipts(&path)), (2, 1), "{storage:?} {step:?}");
        }
    }
}
