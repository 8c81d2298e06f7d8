//! Help, completions, manual pages and the sample database.

use std::fs;

use serde_json::json;

use crate::program::run;

#[test]
fn help_and_version_go_to_standard_output() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [&["--help"][..], &["-h"], &["help"], &["demo", "--help"], &["--version"]] {
        let run = run(home.path(), arguments).expect_status(0);
        assert!(!run.stdout.is_empty() && run.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn completions_and_manual_pages_name_the_verbs() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(run(home.path(), ["completions", shell]).expect_status(0).stdout.contains("demo"), "{shell}");
    }
    assert!(run(home.path(), ["man"]).expect_status(0).stdout.starts_with(".ie"));
    run(home.path(), ["man", "--dir", "pages"]).expect_status(0);
    for page in ["headwater.1", "headwater-demo.1"] {
        assert!(home.path().join("pages").join(page).is_file(), "{page}");
    }
}

#[test]
fn a_sample_is_made_once_and_never_over_a_database() {
    let home = tempfile::tempdir().unwrap();
    let made = run(home.path(), ["demo", "sample", "--json"]).expect_status(0).json();
    let database = home.path().join("sample/opencode.db").canonicalize().unwrap();
    assert_eq!(made["result"]["database"], json!(database));
    assert_eq!(made["result"]["bytes"], json!(fs::metadata(&database).unwrap().len()));
    let before = fs::read(&database).unwrap();
    let again = run(home.path(), ["demo", "sample", "--json"]).expect_status(3);
    assert_eq!(again.json()["error"]["code"], "exists");
    assert!(fs::read(&database).unwrap() == before);
}
