//! `backup`, `restore` and `vacuum`.

use std::fs;
use std::path::Path;

use headwater_testkit::sqlite3::Shell;
use insta::assert_json_snapshot;

use crate::folder::Contents;
use crate::program::{Run, run};
use crate::scene;
use crate::scrub::scrubbed;

const MEASURED: [&str; 13] = [
    "path",
    "from",
    "destination",
    "previous",
    "bytes",
    "rows",
    "tables",
    "bytes_before",
    "bytes_after",
    "bytes_freed",
    "free_page_bytes",
    "log_growth",
    "locked_ms",
];

fn on(home: &Path, arguments: &[&str]) -> Run {
    run(home, arguments.iter().chain(&["--db", "opencode.db", "--json"]))
}

fn sessions(home: &Path, database: &str) -> Vec<serde_json::Value> {
    run(home, ["sessions", "--json", "--db", database]).expect_status(0).json_lines()
}

#[test]
fn a_backup_of_a_database_in_use_is_one_file_with_the_same_sessions() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let mut shell = Shell::open(&home.path().join("opencode.db"));
    shell.run("BEGIN IMMEDIATE; UPDATE session SET title = 'not committed' WHERE id = 'ses_a';");
    let report = on(home.path(), &["backup", "copy.db"]).expect_status(0).json();
    assert_json_snapshot!("backup", scrubbed(report, &MEASURED));
    drop(shell);
    assert_eq!(sessions(home.path(), "copy.db"), sessions(home.path(), "opencode.db"));
    let before = fs::read(home.path().join("copy.db")).unwrap();
    let again = on(home.path(), &["backup", "copy.db"]).expect_status(3).json();
    assert_eq!(again["error"]["code"], "exists");
    let hint = again["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("--force"), "{hint}");
    assert!(fs::read(home.path().join("copy.db")).unwrap() == before);
    on(home.path(), &["backup", "copy.db", "--force"]).expect_status(0);
}

#[test]
fn a_restore_takes_the_place_and_keeps_what_was_there() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let before = sessions(home.path(), "opencode.db");
    on(home.path(), &["backup", "copy.db"]).expect_status(0);
    on(home.path(), &["prune", "--class", "events", "--yes"]).expect_status(0);
    let unconfirmed = Contents::of(home.path());
    assert_eq!(
        on(home.path(), &["restore", "copy.db"]).expect_status(2).json()["error"]["code"],
        "not-confirmed"
    );
    assert_eq!(Contents::of(home.path()), unconfirmed);
    let lines = on(home.path(), &["restore", "copy.db", "--yes"]).expect_status(0).json_lines();
    assert_json_snapshot!("restore", scrubbed(lines, &MEASURED));
    assert_eq!(sessions(home.path(), "opencode.db"), before);
    assert!(home.path().join("opencode.db.before-restore-1").is_file());
}

#[test]
fn a_restore_is_refused_while_somebody_has_the_database_open_and_from_what_is_no_snapshot() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    on(home.path(), &["backup", "copy.db"]).expect_status(0);
    let shell = Shell::open(&home.path().join("opencode.db"));
    let before = fs::read(home.path().join("opencode.db")).unwrap();
    assert_eq!(
        on(home.path(), &["restore", "copy.db", "--yes"]).expect_status(3).json()["error"]["code"],
        "in-use"
    );
    drop(shell);
    fs::write(home.path().join("text.db"), "x".repeat(9000)).unwrap();
    on(home.path(), &["restore", "text.db", "--yes"]).expect_status(5);
    let absent = on(home.path(), &["restore", "absent.db", "--yes"]).expect_status(1).json();
    let hint = absent["error"]["hint"].as_str().unwrap();
    assert!(!hint.contains("--db") && hint.contains("backup"), "{hint}");
    on(home.path(), &["restore", "opencode.db", "--yes"]).expect_status(5);
    let nowhere = run(home.path(), ["restore", "copy.db", "--yes", "--db", "none/x.db"]).expect_status(1);
    assert!(nowhere.stderr.contains("the folder none is missing"), "{}", nowhere.stderr);
    assert!(fs::read(home.path().join("opencode.db")).unwrap() == before);
}

#[test]
fn a_vacuum_measures_what_the_file_lost() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let mut shell = Shell::open(&path);
    shell.run("CREATE TABLE ballast (x); INSERT INTO ballast SELECT zeroblob(1000000); DROP TABLE ballast;");
    drop(shell);
    let before = sessions(home.path(), "opencode.db");
    on(home.path(), &["vacuum"]).expect_status(2);
    let refused = on(home.path(), &["vacuum", "--incremental", "--yes"]).expect_status(4).json();
    assert_eq!(refused["result"]["nothing_freed"], "auto-vacuum-off");
    let mut lines = on(home.path(), &["vacuum", "--yes"]).expect_status(0).json_lines();
    let freed = lines[1]["result"]["bytes_freed"].as_u64().unwrap();
    assert!(freed >= 1_000_000, "{freed}");
    lines.remove(0);
    assert_json_snapshot!("vacuum", scrubbed(lines, &MEASURED));
    assert_eq!(sessions(home.path(), "opencode.db"), before);
    assert_eq!(
        on(home.path(), &["vacuum", "--yes"]).expect_status(4).json()["error"]["code"],
        "nothing-to-gain"
    );
    let unasked = on(home.path(), &["vacuum"]).expect_status(4).json();
    assert_eq!(unasked["error"]["code"], "nothing-to-gain");
}
