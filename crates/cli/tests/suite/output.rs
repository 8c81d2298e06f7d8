//! Pipes, colour, JSON and usage errors.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use headwater_testkit::fixture::{Fixture, Layout, Session};

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

#[test]
fn the_first_ctrl_c_stops_a_list_at_a_safe_point() {
    let home = tempfile::tempdir().unwrap();
    let db = Fixture::create(home.path().join("opencode.db"), Layout::V1);
    let title = "t".repeat(900);
    db.transaction(|db| {
        for number in 0..400 {
            db.session(&Session { title: &title, ..Session::named(&format!("ses_{number:04}")) });
        }
    });
    db.close();
    // The list is longer than a pipe holds: the program waits for the reader until the signal has come.
    let mut child = command(home.path())
        .args(["sessions", "--json", "--db", "opencode.db"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut listed = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    listed.read_line(&mut first).unwrap();
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("stopping at the next safe point") {
        line.clear();
        assert_ne!(told.read_line(&mut line).unwrap(), 0, "nothing was told");
    }
    let mut rest = String::new();
    listed.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "cancelled");
    assert!(rest.lines().count() < 399, "{} lines", rest.lines().count());
}
