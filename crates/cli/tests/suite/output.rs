//! Pipes, colour, JSON and usage errors.

use std::io::Read;
use std::process::Stdio;

use headwater_testkit::fixture::{Fixture, Layout};

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
fn a_check_whose_reader_goes_away_still_says_that_it_found_damage() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("opencode.db");
    let db = Fixture::create(&path, Layout::V1);
    db.sql(
        "CREATE TABLE twin_a (x); CREATE TABLE twin_b (x); PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'twin_a') WHERE name = 'twin_b'",
    );
    db.close();
    for json in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command(home.path())
            .args(["check", "--db", "opencode.db"])
            .args(json)
            .stdout(writer)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(5), "{json:?}");
    }
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    for argument in ["--help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = command(home.path()).arg(argument).stdout(full).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{argument}");
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(told.starts_with("error: cannot write the output"), "{argument}: {told}");
    }
}
