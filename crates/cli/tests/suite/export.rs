//! `headwater export`.

use std::fs;

use serde_json::json;

use crate::folder::Contents;
use crate::program::run;
use crate::scene::{self, CANARY, HOSTILE};

#[test]
fn json_lines_go_to_standard_output_or_into_a_new_file() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let lines = run(home.path(), ["export", "ses_a", "--db", "opencode.db"]).expect_status(0);
    assert_eq!(lines.json_lines()[0], json!({ "format": "headwater-export", "version": 1 }));
    let ids: Vec<_> = lines
        .json_lines()
        .iter()
        .filter(|line| line["table"] == "session")
        .map(|line| line["row"]["id"].clone())
        .collect();
    assert_eq!(ids, ["ses_a", "ses_child"]);
    let alone =
        run(home.path(), ["export", "ses_a", "--no-children", "--db", "opencode.db"]).expect_status(0);
    assert!(!alone.stdout.contains("ses_child"));
    let into = ["export", "ses_a", "--output", "a b.jsonl", "--json", "--db", "opencode.db"];
    let report = run(home.path(), into).expect_status(0).json();
    assert_eq!(report["result"]["sessions"], 2);
    assert_eq!(fs::read_to_string(home.path().join("a b.jsonl")).unwrap(), lines.stdout);
    let before = Contents::of(home.path());
    assert_eq!(run(home.path(), into).expect_status(3).json()["error"]["code"], "exists");
    assert_eq!(Contents::of(home.path()), before);
    run(home.path(), into.iter().chain(&["--force"])).expect_status(0);
    assert_eq!(Contents::of(home.path()), before);
}

#[test]
fn markdown_is_for_reading() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let text = run(home.path(), ["export", "ses_hostile", "--format", "markdown", "--db", "opencode.db"])
        .expect_status(0)
        .stdout;
    assert!(text.contains(CANARY) && !text.contains("12 tests ran"), "{text}");
    let whole = ["export", "ses_hostile", "--format", "markdown", "--technical", "--db", "opencode.db"];
    assert!(run(home.path(), whole).expect_status(0).stdout.contains("12 tests ran"));
}

#[test]
fn what_cannot_be_exported_leaves_no_file() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let before = Contents::of(home.path());
    for (arguments, status) in [
        (&["export", "ses_none", "--output", "x"][..], 2),
        (&["export"], 2),
        (&["export", "--all", "ses_a"], 2),
        (&["export", "--all", "--json"], 2),
        (&["export", "--all", "--no-children"], 2),
        (&["export", "--all", "--force"], 2),
        (&["export", "--all", "--output", "no/such/folder/x"], 1),
        (&["export", "--recoverable", "--output", "opencode.db"], 3),
    ] {
        let refused =
            run(home.path(), arguments.iter().chain(&["--db", "opencode.db"])).expect_status(status);
        assert!(!refused.stderr.contains(CANARY) && !refused.stderr.contains(HOSTILE), "{arguments:?}");
        assert_eq!(Contents::of(home.path()), before, "{arguments:?}");
    }
}

#[test]
fn what_a_killed_export_left_goes_with_the_next_one_to_the_same_place() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_hours(1);
    let leave = |name: &str| {
        let file = fs::File::create(home.path().join(name)).unwrap();
        file.set_modified(old).unwrap();
        file
    };
    for name in [".out.jsonl.aB3dE6.export", ".out.jsonl.my-backup.export", ".other.aB3dE6.export"] {
        leave(name);
    }
    let writing = leave(".out.jsonl.zzzzzz.export");
    writing.lock().unwrap();
    let arguments = ["export", "ses_a", "--output", "out.jsonl", "--db", "opencode.db"];
    run(home.path(), arguments).expect_status(0);
    let mut left: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("export") || name.contains("jsonl"))
        .collect();
    left.sort();
    let wanted =
        [".other.aB3dE6.export", ".out.jsonl.my-backup.export", ".out.jsonl.zzzzzz.export", "out.jsonl"];
    assert_eq!(left, wanted);
}
