//! Pipes, colour, JSON and usage errors.

use std::io::Read;
use std::process::Stdio;

use crate::program::{command, run};

#[test]
fn a_usage_error_has_status_2_and_an_object_for_programs() {
    let home = tempfile::tempdir().unwrap();
    for arguments in
        [&["frobnicate"][..], &[], &["demo"], &["demo", "a", "--colour"], &["completions", "ksh"]]
    {
        let plain = run(home.path(), arguments).expect_status(2);
        assert!(plain.stdout.is_empty() && !plain.stderr.is_empty(), "{arguments:?}");
        let json = run(home.path(), arguments.iter().chain(&["--json"])).expect_status(2);
        assert_eq!(json.json()["error"]["code"], "usage", "{arguments:?}");
        assert_eq!(json.json()["status"], 2, "{arguments:?}");
    }
}

#[test]
fn pipes_get_no_escape_codes_unless_asked() {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), ["demo", "sample"]).expect_status(0);
    let plain = run(home.path(), ["demo", "sample"]).expect_status(3);
    assert!(!plain.stderr.contains('\x1b'), "{}", plain.stderr);
    let asked = run(home.path(), ["demo", "sample", "--color", "always"]).expect_status(3);
    assert!(asked.stderr.contains('\x1b'), "{}", asked.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    // More than a pipe holds, so that the program is still writing when the reader closes.
    let mut child = command(home.path())
        .args(["completions", "zsh", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}
