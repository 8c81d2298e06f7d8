//! `headwater retention plan|run`.

use std::fs;
use std::path::Path;

use insta::assert_json_snapshot;

use crate::folder::Contents;
use crate::program::{Run, run};
use crate::scene;
use crate::scrub::scrubbed;

fn retention(home: &Path, verb: &str, arguments: &[&str]) -> Run {
    let fixed = ["retention", verb, "--json", "--db", "opencode.db"];
    run(home, fixed.iter().chain(arguments))
}

#[test]
fn without_a_policy_retention_is_off() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let before = fs::read(home.path().join("opencode.db")).unwrap();
    let report = retention(home.path(), "run", &["--yes"]).expect_status(4).json();
    assert_eq!(report["result"]["outcome"]["skipped"], "disabled");
    assert!(fs::read(home.path().join("opencode.db")).unwrap() == before);
}

#[test]
fn the_first_run_is_a_preview_and_the_next_removes_what_it_showed() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let policy = home.path().join(".config/headwater/retention.toml");
    fs::create_dir_all(policy.parent().unwrap()).unwrap();
    fs::write(
        &policy,
        "enabled = true\nolder_than = \"1d\"\nclasses = [\"events\"]\npins = [\"ses_hostile\"]\n",
    )
    .unwrap();
    let before = Contents::of(home.path());
    let planned = retention(home.path(), "plan", &[]).expect_status(0).json();
    assert_json_snapshot!("retention_plan", scrubbed(planned, &[]));
    assert_eq!(retention(home.path(), "run", &[]).expect_status(2).json()["error"]["code"], "not-confirmed");
    assert_eq!(Contents::of(home.path()), before);
    let first = retention(home.path(), "run", &["--yes"]).expect_status(4).json();
    assert_eq!(first["result"]["outcome"], "previewed");
    let second = retention(home.path(), "run", &["--yes"]).expect_status(0).json();
    assert_json_snapshot!("retention_run", scrubbed(second, &["locks", "space", "freed"]));
    let third = retention(home.path(), "run", &["--yes"]).expect_status(4).json();
    assert_eq!(third["result"]["outcome"]["skipped"], "nothing-chosen");
    assert!(third["result"]["last_success_ms_ago"].as_i64().is_some_and(|ms| ms >= 0), "{third}");
}

#[test]
fn a_plan_of_nothing_has_no_table() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let text = "enabled = true\nolder_than = \"9000d\"\nclasses = [\"technical\"]\n";
    fs::write(home.path().join("policy.toml"), text).unwrap();
    let plan = ["retention", "plan", "--policy", "policy.toml", "--db", "opencode.db"];
    let shown = run(home.path(), plan).expect_status(4).stdout;
    assert!(shown.contains("0 session trees are chosen") && shown.contains("nothing goes"), "{shown}");
    assert!(!shown.contains("Kept because") && !shown.contains("Frees"), "{shown}");
}

#[test]
fn a_policy_that_is_not_understood_removes_nothing() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let before = Contents::of(home.path());
    for text in [
        "enabled = yes",
        "enabled = true\nunknown_key = 1",
        "enabled = true\nolder_than = \"soon\"",
        "enabled = true\nolder_than = \"-3d\"",
        "enabled = true\nsize_cap = \"big\"",
        "enabled = true\nclasses = [\"text\"]",
        "enabled = true\nclasses = [\"sessions\"]",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy.toml");
        fs::write(&policy, text).unwrap();
        let refused =
            retention(home.path(), "run", &["--yes", "--policy", policy.to_str().unwrap()]).expect_status(2);
        assert_eq!(refused.json()["error"]["code"], "policy", "{text}");
    }
    retention(home.path(), "run", &["--yes", "--policy", "absent.toml"]).expect_status(2);
    assert_eq!(Contents::of(home.path()), before);
}
