//! Every cell of `docs/spec/prune-protocol.md`: a process that is killed at each step, and what a retry makes of it.

use std::process::Stdio;

use super::*;
use crate::fixture::killed::Killed;
use crate::fixture::test_process;
use crate::undo::Archive;

const DATABASE: &str = "HEADWATER_TEST_PRUNE_DATABASE";
const REQUEST: &str = "HEADWATER_TEST_PRUNE_REQUEST";
const STEP: &str = "HEADWATER_TEST_PRUNE_STEP";
const ARCHIVE: &str = "HEADWATER_TEST_PRUNE_ARCHIVE";

/// The process that prunes and is killed; passes at once when run as an ordinary test.
#[test]
fn killed_process_entry() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let request: PruneRequest = serde_json::from_str(&std::env::var(REQUEST).unwrap()).unwrap();
    let observer = Killed(std::env::var(STEP).unwrap());
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(&path)).unwrap();
    let now = UnixMillis::new(NOW + 60_000);
    let pruner =
        Pruner::new(&database, &mut state, &NoServers, PruneOptions::immediate(), now, &observer).unwrap();
    let mut archive;
    let mut pruner = match std::env::var_os(ARCHIVE) {
        None => pruner,
        Some(file) => {
            let identity = DatabaseIdentity::read(database.connection(), database.file()).unwrap();
            archive = Archive::open(Path::new(&file), &identity).unwrap();
            pruner.with_archive(&mut archive)
        }
    };
    receipt(pruner.message(&request, None).unwrap());
}

/// Runs a prune that is killed at `step`; `false` where it ended without reaching it.
pub(super) fn killed_at(step: Step, path: &Path, request: &PruneRequest, archive: Option<&Path>) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let mut child = test_process("prune::tests::crash::killed_process_entry");
    child
        .env(DATABASE, path)
        .env(REQUEST, serde_json::to_string(request).unwrap())
        .env(STEP, step.name())
        .stdout(Stdio::null());
    if let Some(archive) = archive {
        child.env(ARCHIVE, archive);
    }
    let status = child.status().unwrap();
    assert!(status.success() || status.signal() == Some(9), "{step:?}: {status}");
    status.signal() == Some(9)
}

/// Whether a process that is killed at `step` leaves the change.
fn is_committed(step: Step) -> bool {
    step >= Step::Committed
}

fn has_state(storage: Storage, layout: Layout) -> bool {
    storage != Storage::V2 || layout == Layout::ReducedV2
}

#[test]
fn a_kill_at_any_step_leaves_the_old_state_or_the_new_one_and_a_retry_leaves_one_receipt() {
    let steps = Step::ALL.into_iter().filter(|step| *step != Step::FieldsRead).map(|step| (step, true));
    // Without an archive nothing differs before the intent.
    let without = [Step::Intended, Step::Committed, Step::Durable, Step::Recorded].map(|step| (step, false));
    let cases: Vec<_> = steps.chain(without).collect();
    for (storage, layout) in STORAGES {
        for (step, has_archive) in cases.clone() {
            let folder = tempfile::tempdir().unwrap();
            let path = build(folder.path(), storage, layout);
            let request = request(&path, &[0, 1]);
            let before = dump(&path);
            let archive = folder.path().join("undo.zst");
            let was_killed = killed_at(step, &path, &request, has_archive.then_some(&*archive));
            let is_state_step =
                matches!(step, Step::Claimed | Step::Resolved | Step::Intended | Step::Recorded);
            assert_eq!(was_killed, !is_state_step || has_state(storage, layout), "{storage:?} {step:?}");
            let is_done = is_committed(step) || !was_killed;
            assert_eq!(dump(&path) != before, is_done, "{storage:?} {step:?}");

            let first = receipt(prune(&path, &request));
            let after = dump(&path);
            assert_eq!(preview(&path).revision, first.after, "{storage:?} {step:?}");
            assert_eq!(preview(&path).items.len(), 2);
            assert_eq!(receipt(prune(&path, &request)), first, "{storage:?} {step:?}");
            assert_eq!((dump(&path), receipts(&path)), (after, 1), "{storage:?} {step:?}");
        }
    }
}

/// The other order: somebody else writes the message between the kill and the retry.
#[test]
fn a_message_that_is_written_after_the_kill_is_judged_by_what_is_left_of_the_items() {
    for (storage, layout) in STORAGES {
        for step in [Step::Intended, Step::Edited, Step::Committed, Step::Recorded] {
            let folder = tempfile::tempdir().unwrap();
            let path = build(folder.path(), storage, layout);
            let request = request(&path, &[0, 1]);
            if !killed_at(step, &path, &request, None) {
                continue;
            }
            let table = if storage == Storage::V1 { "part" } else { "session_message" };
            Fixture::reopen(&path)
                .sql(&format!("UPDATE {table} SET data = replace(data, 'answer', 'ANSWER')"));
            let before = dump(&path);
            match prune(&path, &request) {
                Answer::Pruned(receipt) => {
                    assert!(is_committed(step), "{storage:?} {step:?}: reports a prune that did not happen");
                    assert_eq!(receipt.before, request.revision);
                }
                Answer::Blocked(blocked) => {
                    assert!(!is_committed(step), "{storage:?} {step:?}: loses the receipt");
                    assert_eq!(blocked.reason.code(), "conflict");
                }
            }
            assert_eq!(dump(&path), before, "{storage:?} {step:?}");
            assert_eq!(receipts(&path), u64::from(is_committed(step)));
        }
    }
}

/// A second request for overlapping items after the kill must not make the first one look done.
#[test]
fn another_request_resolves_what_the_killed_one_left_open() {
    for (storage, layout) in STORAGES.into_iter().filter(|(storage, layout)| has_state(*storage, *layout)) {
        for step in [Step::Intended, Step::Committed] {
            let folder = tempfile::tempdir().unwrap();
            let path = build(folder.path(), storage, layout);
            let first = request(&path, &[1]);
            assert!(killed_at(step, &path, &first, None));
            let second = request(&path, if is_committed(step) { &[0, 2] } else { &[0, 1, 3] });
            receipt(prune(&path, &second));
            let before = dump(&path);
            match prune(&path, &first) {
                Answer::Pruned(_) => {
                    assert!(is_committed(step), "{storage:?}: reports a prune that did not happen");
                }
                Answer::Blocked(blocked) => {
                    assert!(!is_committed(step), "{storage:?}: loses the receipt");
                    assert_eq!(blocked.reason.code(), "conflict");
                }
            }
            assert_eq!(dump(&path), before);
            assert_eq!(receipts(&path), 1 + u64::from(is_committed(step)));
        }
    }
}
