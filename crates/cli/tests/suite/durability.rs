//! Which sync comes before which change, seen from outside: what a loss of power would leave. Each test names the order that a
//! protocol of `docs/spec/` promises; without the sync, or with it too late, it fails.

use std::path::Path;

use headwater_testkit::fixture::{Fixture, Session};
use headwater_testkit::sqlite3::Shell;
use headwater_testkit::trace::{self, Call, Trace};

use crate::program::{self, run};
use crate::scene;

/// Runs the program in `home`, which must end with `status`, and answers what it did to the files there.
fn traced(home: &Path, arguments: &[&str], status: i32) -> Trace {
    let (trace, output) = trace::run(&program::path(), home, |command| {
        let variables = [("HOME", home.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())];
        command.env_clear().envs(variables).env("TZ", "UTC").args(arguments).current_dir(home);
    });
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
    trace
}

/// The scene, with one more session in a log that a killed process left.
fn with_log(home: &Path) {
    let path = scene::database(home);
    let db = Fixture::reopen(&path);
    db.session(&Session::named("ses_log"));
    db.close_leaving_log();
}

fn is(call: &Call, name: &str) -> bool {
    call.file.ends_with(name)
}

fn is_new(call: &Call) -> bool {
    Path::new(&call.file).extension().is_some_and(|ending| ending == "tmp")
}

/// Asserts that everything that was written to the new file was synced, and then its folder, before `call`.
fn assert_new_file_is_synced(trace: &Trace, home: &Path, call: &Call) {
    let last = trace.last("write to the new file", |found| is_new(found) && found.is_write());
    let synced = trace.last("sync of the new file", |found| is_new(found) && found.is_sync());
    assert!(last.is_before(synced), "{last:?} is not before {synced:?}");
    let folder = home.to_str().unwrap();
    trace.assert_between("sync of the folder", synced, call, |found| found.file == folder && found.is_sync());
}

/// Asserts that the log is merged into the database and that is synced, before the log is cut off.
fn assert_log_is_merged_safely(trace: &Trace) {
    let cut = trace.last("end of the log", |call| call.name == "ftruncate" && is(call, "opencode.db-wal"));
    let merged =
        trace.last("merge", |call| call.name == "pwrite64" && is(call, "opencode.db") && call.is_before(cut));
    trace.assert_between("sync of the database", merged, cut, |call| {
        is(call, "opencode.db") && call.is_sync()
    });
}

#[test]
fn a_rebuild_without_a_log_has_its_new_file_on_the_disk_before_the_exchange() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let trace = traced(home.path(), &["rebuild", "--class", "events", "--yes", "--db", "opencode.db"], 0);
    assert_new_file_is_synced(&trace, home.path(), trace.first("exchange", Call::is_rename));
}

#[test]
fn a_rebuild_is_on_the_disk_before_each_step_that_relies_on_it() {
    let home = tempfile::tempdir().unwrap();
    with_log(home.path());
    let trace = traced(home.path(), &["rebuild", "--class", "events", "--yes", "--db", "opencode.db"], 0);
    let exchange = trace.first("exchange", Call::is_rename);
    assert!(exchange.arguments.ends_with("RENAME_EXCHANGE"), "{exchange:?}");
    assert_eq!(trace.0.iter().filter(|call| call.is_rename()).count(), 1, "{trace}");
    assert_new_file_is_synced(&trace, home.path(), exchange);
    assert_log_is_merged_safely(&trace);

    let retired = trace.first("end of the old file", |call| is_new(call) && call.is_unlink());
    let folder = home.path().to_str().unwrap();
    trace.assert_between("sync of the folder", exchange, retired, |call| {
        call.file == folder && call.is_sync()
    });

    // Nobody's lock on the database is given back, by whatever descriptor, before the old file has lost its name.
    let locked = trace.first("exclusive lock", |call| {
        is(call, "opencode.db") && call.arguments.contains("F_WRLCK") && call.arguments.contains("l_len=510")
    });
    trace.assert_none_between("a lock given back", locked, retired, |call| {
        is(call, "opencode.db") && call.is_unlock()
    });
    // The lease is asked for, and asked again right before the exchange.
    let lease = trace.first("lease", |call| call.arguments.contains("F_SETLEASE, F_WRLCK"));
    trace.assert_between("look at the lease", lease, exchange, |call| call.arguments.contains("F_GETLEASE"));
    trace.assert_between("end of the log's name", lease, exchange, |call| {
        is(call, "opencode.db-wal") && call.is_unlink()
    });
    let asked = trace.last("look at the lease", |call| call.arguments.contains("F_GETLEASE"));
    assert!(retired.is_before(asked), "who waits at the old file is looked for once more");
}

#[test]
fn a_rebuild_in_place_keeps_the_new_file_until_the_old_one_has_its_content() {
    let home = tempfile::tempdir().unwrap();
    with_log(home.path());
    // Open, without a statement: refuses the lease and no lock.
    let reader = std::fs::File::open(home.path().join("opencode.db")).unwrap();
    let arguments = ["rebuild", "--class", "events", "--in-place", "--yes", "--db", "opencode.db"];
    let trace = traced(home.path(), &arguments, 0);
    drop(reader);
    assert!(!trace.0.iter().any(Call::is_rename), "{trace}");
    let retired = trace.first("end of the new file", |call| is_new(call) && call.is_unlink());
    assert_new_file_is_synced(&trace, home.path(), retired);
    assert_log_is_merged_safely(&trace);
    let merged = trace.last("merge", |call| call.is_write() && is(call, "opencode.db"));
    trace.assert_between("sync of the database", merged, retired, |call| {
        is(call, "opencode.db") && call.is_sync()
    });
}

#[test]
fn a_prune_has_its_archive_and_intent_on_the_disk_before_the_change_and_the_change_before_its_receipt() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let fixed = ["--db", "opencode.db", "--json"];
    let preview =
        run(home.path(), ["preview", "--message", "msg_a_2"].iter().chain(&fixed)).expect_status(0).json();
    let revision = preview["result"]["revision"].as_str().unwrap();
    let request = ["prune", "--message", "msg_a_2", "--index", "0", "--revision", revision, "--yes"];
    let places = ["--state", "new/state", "--archive", "removed.zst"];
    let trace = traced(home.path(), &[&request[..], &places, &fixed].concat(), 0);

    let is_log = |call: &Call| is(call, "opencode.db-wal");
    let is_state = |call: &Call| is(call, "receipts.db");
    let change = trace.first("commit", |call| is_log(call) && call.name == "pwrite64");
    let committed =
        trace.first("sync of the commit", |call| is_log(call) && call.is_sync() && change.is_before(call));
    let before = |found: &Call| found.is_before(change);
    let archived = trace.last("write to the archive", |call| is(call, "removed.zst") && call.is_write());
    assert!(archived.is_before(change));
    trace.assert_between("sync of the archive", archived, change, |call| {
        is(call, "removed.zst") && call.is_sync()
    });
    let intended = trace.last("intent", |call| is_state(call) && call.is_write() && before(call));
    trace.assert_between("sync of the intent", intended, change, |call| is_state(call) && call.is_sync());
    // The journal ends the transaction by losing its name, and only the folder can keep that.
    let ended = trace.last("end of the journal", |call| {
        is(call, "receipts.db-journal") && call.is_unlink() && before(call)
    });
    trace.assert_between("sync of the state folder", ended, change, |call| {
        is(call, "/state") && call.is_sync()
    });

    assert!(
        trace.0.iter().any(|call| is(call, "/new") && call.is_sync() && before(call)),
        "the folder above the new one keeps its name: {trace}"
    );

    let recorded = trace.last("receipt", |call| is_state(call) && call.is_write());
    assert!(committed.is_before(recorded), "the receipt is done before the change is on the disk");
    let end = trace.last("anything", |_| true);
    trace.assert_between("sync of the receipt", recorded, end, |call| is_state(call) && call.is_sync());
}

#[test]
fn an_undo_is_on_the_disk_before_it_is_reported() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let fixed = ["--yes", "--archive", "removed.zst", "--db", "opencode.db"];
    run(home.path(), ["prune", "--class", "technical", "--newest-turn"].iter().chain(&fixed))
        .expect_status(0);
    let trace = traced(home.path(), &[&["undo"], &fixed[..]].concat(), 0);
    let change = trace.first("change", |call| is(call, "opencode.db-wal") && call.name == "pwrite64");
    let end = trace.last("anything", |_| true);
    trace.assert_between("sync of the change", change, end, |call| {
        is(call, "opencode.db-wal") && call.is_sync()
    });
}

/// The lock byte of the log's index that every writer holds (sqlite.org/walformat.html, section 2.3).
const WRITE_LOCK: &str = "l_start=120, l_len=1";

/// Beside a program that writes a lot a sync takes seconds, and OpenCode waits for the lock on its only thread (P8a).
#[test]
fn no_sync_falls_into_the_time_of_a_write_lock() {
    let fixed = ["--yes", "--archive", "removed.zst", "--db", "opencode.db"];
    let technical = ["prune", "--class", "technical", "--newest-turn"];
    for has_log in [false, true] {
        let home = tempfile::tempdir().unwrap();
        if has_log {
            with_log(home.path());
        } else {
            scene::database(home.path());
        }
        for command in [&technical[..], &["undo"]] {
            let trace = traced(home.path(), &[command, &fixed].concat(), 0);
            let (mut is_held, mut locks) = (false, 0);
            for call in &trace.0 {
                if call.is_ok && is(call, "opencode.db-shm") && call.arguments.contains(WRITE_LOCK) {
                    is_held = call.arguments.contains("F_WRLCK");
                    locks += u32::from(is_held);
                }
                assert!(!is_held || !call.is_sync(), "{command:?}: {call:?} under the lock: {trace}");
            }
            assert!(locks > 0, "{command:?}: {trace}");
        }
    }
}

#[test]
fn a_snapshot_is_on_the_disk_before_it_has_its_name() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let folder = home.path().to_str().unwrap();
    for force in [&[][..], &["--force"]] {
        let trace = traced(home.path(), &[&["backup", "copy.db", "--db", "opencode.db"], force].concat(), 0);
        let named = trace.first("name", Call::is_rename);
        let written = trace.last("write", |call| is_new(call) && call.name == "pwrite64");
        trace.assert_between("sync", written, named, |call| is_new(call) && call.is_sync());
        let end = trace.last("anything", |_| true);
        trace.assert_between("sync of the folder", named, end, |call| call.file == folder && call.is_sync());
    }
    let trace = traced(home.path(), &["salvage", "saved.db", "--db", "opencode.db"], 0);
    let named = trace.first("name", Call::is_rename);
    let is_hidden = |call: &Call| is(call, ".saved.db.salvage");
    let written = trace.last("write", |call| is_hidden(call) && call.is_write());
    trace.assert_between("sync", written, named, |call| is_hidden(call) && call.is_sync());
    let end = trace.last("anything", |_| true);
    trace.assert_between("sync of the folder", named, end, |call| call.file == folder && call.is_sync());
}

#[test]
fn a_restore_is_on_the_disk_before_the_old_database_gives_way() {
    let home = tempfile::tempdir().unwrap();
    with_log(home.path());
    run(home.path(), ["backup", "copy.db", "--db", "opencode.db"]).expect_status(0);
    let trace = traced(home.path(), &["restore", "copy.db", "--yes", "--db", "opencode.db"], 0);
    let is_exchange = |call: &Call| call.is_rename() && call.arguments.ends_with("RENAME_EXCHANGE");
    let exchange = trace.first("exchange", is_exchange);
    assert_new_file_is_synced(&trace, home.path(), exchange);
    let kept = trace.last("name for the old database", Call::is_rename);
    assert!(kept.arguments.contains("before-restore-1"), "{kept:?}");
    let folder = home.path().to_str().unwrap();
    trace.assert_between("sync of the folder", exchange, kept, |call| call.file == folder && call.is_sync());
}

#[test]
fn a_vacuum_is_on_the_disk_before_its_log_is_cut() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let mut shell = Shell::open(&path);
    shell.run("CREATE TABLE ballast (x); INSERT INTO ballast SELECT zeroblob(1000000); DROP TABLE ballast;");
    drop(shell);
    let trace = traced(home.path(), &["vacuum", "--yes", "--db", "opencode.db"], 0);
    assert_log_is_merged_safely(&trace);
}
