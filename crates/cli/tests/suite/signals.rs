//! What a signal does to a command under way.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use headwater_testkit::fixture::{Fixture, Layout, Session};
use headwater_testkit::sqlite3::Shell;
use serde_json::Value;

use crate::folder::Contents;
use crate::program::{Run, command, path, run};
use crate::scene;

/// A database whose list of sessions is longer than a pipe holds: the program waits for the reader until the signal has come.
fn many_sessions(home: &Path) {
    let db = Fixture::create(home.join("opencode.db"), Layout::V1);
    let title = "t".repeat(900);
    db.transaction(|db| {
        for number in 0..400 {
            db.session(&Session { title: &title, ..Session::named(&format!("ses_{number:04}")) });
        }
    });
    db.close();
}

/// The program as a shell starts it that has run `before`.
fn shell(home: &Path, before: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{before}\nexec \"$0\" \"$@\"")]).arg(path()).args(arguments);
    command.env_clear().env("HOME", home).env("TZ", "UTC").env("PATH", "/usr/bin:/bin").current_dir(home);
    command.stdin(Stdio::null());
    command
}

/// Starts a list, reads its first line, and sends `signal`.
fn signalled(home: &Path, before: &str, signal: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = shell(home, before, &["sessions", "--json", "--db", "opencode.db"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut listed = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    listed.read_line(&mut first).unwrap();
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    (child, listed)
}

#[test]
fn the_first_signal_that_asks_to_end_stops_a_list_at_a_safe_point() {
    let home = tempfile::tempdir().unwrap();
    many_sessions(home.path());
    for signal in ["-INT", "-TERM", "-HUP"] {
        let (mut child, mut listed) = signalled(home.path(), "", signal);
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("stopping at the next safe point") {
            line.clear();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "{signal}: nothing was told");
        }
        let mut rest = String::new();
        listed.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{signal}");
        let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
        assert_eq!(last["error"]["code"], "cancelled", "{signal}");
        assert!(rest.lines().count() < 399, "{signal}: {} lines", rest.lines().count());
    }
}

#[test]
fn an_undo_that_is_stopped_writes_one_line_that_ends_it() {
    let home = tempfile::tempdir().unwrap();
    let database = scene::database(home.path());
    let prune = ["prune", "--class", "events", "--class", "technical", "--newest-turn"];
    let archive = ["--archive", "removed.zst", "--yes", "--db", "opencode.db"];
    run(home.path(), [&prune[..], &archive].concat()).expect_status(0);
    // Nothing can be restored before the signal has come.
    let mut other = Shell::open(&database);
    other.run("BEGIN IMMEDIATE;");
    let mut child = command(home.path())
        .args(["undo", "--json"])
        .args(archive)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let plan = lines.next().unwrap().unwrap();
    assert!(plan.starts_with("{\"plan\":"), "{plan}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    assert_ne!(told.read_line(&mut line).unwrap(), 0, "nothing was told");
    drop(other);
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest:?}");
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["report"]["is_cancelled"], true);
    assert_eq!(rest[1]["error"]["code"], "cancelled");
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let home = tempfile::tempdir().unwrap();
    many_sessions(home.path());
    let (child, mut listed) = signalled(home.path(), "trap '' HUP", "-HUP");
    let mut rest = String::new();
    listed.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.lines().count(), 400);
    let ended: Run = child.wait_with_output().unwrap().into();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), ["demo", "sample"]).expect_status(0);
    let before = Contents::of(home.path());
    for arguments in [
        &["backup", "copy.db"][..],
        &["salvage", "copy.db"],
        &["rebuild", "--class", "leftover", "--yes"],
        &["vacuum", "--force", "--yes"],
        &["export", "--all", "--output", "all.jsonl"],
    ] {
        let arguments = [arguments, &["--db", "sample/opencode.db"]].concat();
        // Blocks of 512 bytes.
        let refused: Run = shell(home.path(), "ulimit -f 1000", &arguments).output().unwrap().into();
        assert_eq!(refused.status, 1, "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("error: "), "{arguments:?}: {refused:?}");
        assert_eq!(Contents::of(home.path()), before, "{arguments:?}");
    }
}
