//! The program on a terminal, which the program `script` provides.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use headwater_testkit::program::find;

use crate::program;
use crate::scene;

/// The program on a terminal of `columns` columns, with `arguments` that need no quoting.
fn start(home: &Path, columns: u16, arguments: &str) -> Child {
    let script = find("script", "package bsdutils on Debian and Ubuntu");
    let line = format!("stty rows 24 cols {columns}; {} {arguments}", program::path().display());
    let variables = [("HOME", home.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())];
    Command::new(script)
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_clear()
        .envs(variables)
        .envs([("TERM", "xterm"), ("TZ", "UTC"), ("SHELL", "/bin/sh")])
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script starts")
}

/// What the program shows on a terminal, and its exit status.
fn on_terminal(home: &Path, columns: u16, arguments: &str) -> (String, i32) {
    end(start(home, columns, arguments), String::new())
}

/// What the program shows until it asks, is answered with `keys`, and ends; and its exit status.
fn answered(home: &Path, arguments: &str, keys: &[u8]) -> (String, i32) {
    let mut child = start(home, 80, arguments);
    let mut shown = Vec::new();
    let mut byte = [0];
    while !shown.ends_with(b"[y/N] ") {
        child.stdout.as_mut().unwrap().read_exact(&mut byte).expect("a question");
        shown.push(byte[0]);
    }
    child.stdin.as_mut().unwrap().write_all(keys).unwrap();
    end(child, String::from_utf8(shown).expect("UTF-8"))
}

fn end(mut child: Child, mut shown: String) -> (String, i32) {
    child.stdout.take().unwrap().read_to_string(&mut shown).expect("UTF-8");
    let status = child.wait().unwrap();
    (shown, status.code().expect("no signal"))
}

#[test]
fn a_terminal_gets_colour_and_no_color_is_heeded() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("opencode.db"), "mine").unwrap();
    let (shown, status) = on_terminal(home.path(), 80, "demo .");
    assert_eq!(status, 3, "{shown}");
    assert!(shown.contains('\x1b'), "{shown}");
    let (shown, _) = on_terminal(home.path(), 80, "demo . --color never");
    assert!(!shown.contains('\x1b'), "{shown}");
}

#[test]
fn only_yes_lets_a_prune_go_on() {
    for keys in [&b"n\n"[..], b"\n", b"maybe\n", b"\x04"] {
        let home = tempfile::tempdir().unwrap();
        let path = scene::database(home.path());
        let before = fs::read(&path).unwrap();
        let (shown, status) = answered(home.path(), "prune --class events --db opencode.db", keys);
        assert_eq!(status, 1, "{keys:?}: {shown}");
        assert!(shown.contains("nothing was changed"), "{keys:?}: {shown}");
        assert!(fs::read(&path).unwrap() == before, "{keys:?}");
    }
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let (shown, status) = answered(home.path(), "prune --class events --db opencode.db", b"yes\n");
    assert_eq!(status, 0, "{shown}");
    assert!(shown.contains("Removed"), "{shown}");
}

#[test]
fn ctrl_c_at_the_question_ends_at_once_and_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let before = fs::read(&path).unwrap();
    let (shown, status) = answered(home.path(), "rebuild --class events --db opencode.db", b"\x03");
    assert_eq!(status, 130, "{shown}");
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn tables_fit_a_narrow_terminal() {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    for (columns, verb) in [(100, "stats"), (60, "preview --class events --class technical"), (80, "check")] {
        let (shown, _) = on_terminal(home.path(), columns, &format!("{verb} --color never --db opencode.db"));
        let table = shown.lines().map(|line| line.trim_end_matches('\r').chars().count()).max().unwrap();
        let path_length =
            home.path().to_str().unwrap().len() + "opencode.db: layout 1.x and 2.x, 100.0 KiB, log 0 B".len();
        assert!(table <= usize::from(columns).max(path_length), "{verb}: {table} columns\n{shown}");
    }
    for columns in [1, 5, 20] {
        let (shown, status) = on_terminal(home.path(), columns, "stats --db opencode.db");
        assert_eq!(status, 0, "{columns}: {shown}");
    }
}
