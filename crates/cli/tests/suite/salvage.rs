//! `headwater salvage`.

use std::fs;

use insta::assert_json_snapshot;

use crate::folder::Contents;
use crate::program::run;
use crate::scene::{self, CANARY};
use crate::scrub::scrubbed;

#[test]
fn a_damaged_page_costs_its_rows_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let mut bytes = fs::read(&path).unwrap();
    let canary = bytes.windows(CANARY.len()).rposition(|window| window == CANARY.as_bytes()).unwrap();
    let page = canary / 4096 * 4096;
    bytes[page..page + 4096].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let before = Contents::of(home.path());
    run(home.path(), ["check", "--db", "opencode.db"]).expect_status(5);
    let saved = run(home.path(), ["salvage", "saved.db", "--json", "--db", "opencode.db"]).expect_status(0);
    assert!(!saved.stderr.contains(CANARY), "{}", saved.stderr);
    let mut report = saved.json();
    let tables = report["result"]["tables"].as_array_mut().unwrap();
    let lost = tables.iter().filter(|table| table["rows_lost"] != 0).count();
    assert_eq!(lost, 1, "{tables:?}");
    tables.retain(|table| table["name"] == "session");
    let measured = ["source", "target", "target_bytes", "rows_recovered", "rows_lost", "broken_references"];
    assert_json_snapshot!("salvage", scrubbed(report, &measured));
    let listed = run(home.path(), ["sessions", "--db", "saved.db", "--json"]).expect_status(0).json();
    assert_eq!(listed["result"]["listed"], 4);
    fs::remove_file(home.path().join("saved.db")).unwrap();
    assert_eq!(Contents::of(home.path()), before);
}

#[test]
fn a_file_that_exists_is_never_written_over() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    fs::write(home.path().join("saved.db"), "mine").unwrap();
    let before = Contents::of(home.path());
    let refused = run(home.path(), ["salvage", "saved.db", "--json", "--db", "opencode.db"]).expect_status(3);
    assert_eq!(refused.json()["error"]["code"], "exists");
    assert_eq!(Contents::of(home.path()), before);
}

#[test]
fn what_never_was_a_database_is_status_5() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("text.db"), "x".repeat(9000)).unwrap();
    let before = Contents::of(home.path());
    run(home.path(), ["salvage", "saved.db", "--db", "text.db"]).expect_status(5);
    run(home.path(), ["salvage", "saved.db", "--db", "absent.db"]).expect_status(1);
    assert_eq!(Contents::of(home.path()), before);
}
