//! `headwater locate`.

use std::fs;

use headwater_testkit::sqlite3::Shell;
use serde_json::json;

use crate::program::{command, run};

#[test]
fn without_a_database_the_place_is_named_with_status_4() {
    let home = tempfile::tempdir().unwrap();
    let answer = run(home.path(), ["locate", "--json"]).expect_status(4).json();
    let place = home.path().join(".local/share/opencode/opencode.db");
    assert_eq!(answer["result"]["path"], json!(place));
    assert_eq!(answer["result"]["exists"], json!(false));
    let shown = run(home.path(), ["locate"]).expect_status(4).stdout;
    assert_eq!(shown.lines().next(), place.to_str());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn the_environment_of_opencode_decides_unless_a_path_is_named() {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), ["demo", "data/opencode"]).expect_status(0);
    let located = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut program = command(home.path());
        let output = program
            .envs(variables.iter().copied())
            .args(["locate", "--json"])
            .args(arguments)
            .output()
            .unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (answer["result"]["reason"].as_str().unwrap().to_owned(), answer["result"]["exists"] == json!(true))
    };
    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    assert_eq!(located(&[("XDG_DATA_HOME", data)], &[]), ("standard".to_owned(), true));
    assert_eq!(located(&[("OPENCODE_DB", "data/x.db")], &[]), ("named-by-environment".to_owned(), false));
    let named = ["--db", "data/opencode/opencode.db"];
    assert_eq!(located(&[("OPENCODE_DB", ":memory:")], &named), ("named-by-option".to_owned(), true));
}

#[test]
fn a_process_that_has_the_database_open_is_named() {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), ["demo", "d"]).expect_status(0);
    let shell = Shell::open(&home.path().join("d/opencode.db"));
    let answer = run(home.path(), ["locate", "--json", "--db", "d/opencode.db"]).expect_status(0).json();
    let holder = &answer["result"]["holders"]["holders"][0];
    assert_eq!(holder["pid"], json!(shell.pid()));
    assert_eq!(holder["command"], "sqlite3");
    let shown = run(home.path(), ["locate", "--db", "d/opencode.db"]).expect_status(0).stdout;
    assert!(shown.contains(&shell.pid().to_string()), "{shown}");
}

#[test]
fn a_path_with_a_newline_stays_on_its_line() {
    let home = tempfile::tempdir().unwrap();
    let shown = run(home.path(), ["locate", "--db", "a\nb c.db"]).expect_status(4).stdout;
    assert_eq!(shown.lines().next(), Some("a\\nb c.db"));
}
