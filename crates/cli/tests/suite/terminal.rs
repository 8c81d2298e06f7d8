//! The program on a terminal, which the program `script` provides.

use std::path::Path;
use std::process::{Command, Stdio};

use headwater_testkit::program::find;

use crate::program;

/// What the program shows on a terminal of `columns` columns, with `arguments` that need no quoting, and its exit status.
fn on_terminal(home: &Path, columns: u16, arguments: &str) -> (String, i32) {
    let script = find("script", "package bsdutils on Debian and Ubuntu");
    let line = format!("stty cols {columns}; {} {arguments}", program::path().display());
    let output = Command::new(script)
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_clear()
        .envs([
            ("HOME", home.as_os_str()),
            ("PATH", "/usr/bin:/bin".as_ref()),
            ("TERM", "xterm".as_ref()),
            ("TZ", "UTC".as_ref()),
        ])
        .current_dir(home)
        .stdin(Stdio::null())
        .output()
        .expect("script starts");
    (String::from_utf8(output.stdout).expect("UTF-8"), output.status.code().expect("no signal"))
}

#[test]
fn a_terminal_gets_colour_and_no_color_is_heeded() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("opencode.db"), "mine").unwrap();
    let (shown, status) = on_terminal(home.path(), 80, "demo .");
    assert_eq!(status, 3, "{shown}");
    assert!(shown.contains('\x1b'), "{shown}");
    let (shown, _) = on_terminal(home.path(), 80, "demo . --color never");
    assert!(!shown.contains('\x1b'), "{shown}");
}
