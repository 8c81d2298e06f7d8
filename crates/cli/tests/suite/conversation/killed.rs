//! Killed at any step, and run again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use headwater_testkit::program::find;

use super::{HOST, JOURNAL, fill, host, on, source_rows};
use crate::program;

/// Calls that leave a trace on the disk.
const CALLS: &str = "pwrite64,write,unlink,unlinkat,rename,renameat2,link,linkat,ftruncate,fsync,fdatasync";

/// Runs a verb that is killed when it makes the `number`th of those calls. Answers whether it was.
fn killed_at(home: &Path, number: u32, db: &str, arguments: &[&str]) -> bool {
    let ended = Command::new(find("strace", "package strace on Debian and Ubuntu"))
        .args(["-f", "-qq", "-e", "signal=none", "-o", "/dev/null", "-e", &format!("trace={CALLS}"), "-e"])
        .arg(format!("inject={CALLS}:signal=KILL:when={number}"))
        .arg(program::path())
        .arg("conversation")
        .args(arguments)
        .args(["--db", db])
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    ended.code().is_none() || ended.code() == Some(137)
}

/// Kills a verb at its first calls and at some of the later ones, each time on what `scene` makes, and has `then` look.
fn at_every_step(db: &str, arguments: &[&str], scene: &dyn Fn(&Path), then: &dyn Fn(&Path)) {
    let mut number = 1;
    let mut killed = 0;
    loop {
        let home = tempfile::tempdir().unwrap();
        scene(home.path());
        let was_killed = killed_at(home.path(), number, db, arguments);
        then(home.path());
        if !was_killed {
            break;
        }
        killed += 1;
        number += 1 + number / 6;
    }
    assert!(killed > 5, "{killed}");
}

#[test]
fn a_cutover() {
    let sql = format!("{HOST}{JOURNAL}");
    let rows = {
        let home = tempfile::tempdir().unwrap();
        source_rows(&host(home.path(), &sql))
    };
    let scene = |home: &Path| {
        host(home, &sql);
        fs::create_dir(home.join(".host")).unwrap();
        fs::write(home.join(".host/session-events.sqlite"), "copies").unwrap();
    };
    at_every_step("host.db", &["cutover", "--yes"], &scene, &|home| {
        assert!([0, 4].contains(&on(home, "host.db", &["cutover", "--yes"]).status));
        assert_eq!(source_rows(&home.join("host.db")), rows);
        on(home, "host.db", &["cutover", "--yes"]).expect_status(4);
        on(home, "host.db", &["check"]).expect_status(0);
        assert!(!home.join(".host/session-events.sqlite").exists());
        assert!(!home.join("host.db.before-cutover.partial").exists());
    });
}

#[test]
fn an_import() {
    let source = tempfile::tempdir().unwrap();
    fill(source.path(), "a.db");
    let export = on(source.path(), "a.db", &["export"]).stdout;
    let scene = |home: &Path| {
        on(home, "b.db", &["init"]).expect_status(0);
        fs::write(home.join("all.jsonl"), &export).unwrap();
    };
    at_every_step("b.db", &["import", "all.jsonl"], &scene, &|home| {
        assert!([0, 4].contains(&on(home, "b.db", &["import", "all.jsonl"]).status));
        assert_eq!(on(home, "b.db", &["export"]).stdout, export);
        on(home, "b.db", &["check"]).expect_status(0);
    });
}

#[test]
fn a_restore() {
    let scene = |home: &Path| {
        on(home, "a.db", &["init"]).expect_status(0);
        on(home, "a.db", &["post", "ses_a", "old", "--create"]).expect_status(0);
        on(home, "a.db", &["backup", "b.db"]).expect_status(0);
        on(home, "a.db", &["post", "ses_a", "new"]).expect_status(0);
    };
    at_every_step("a.db", &["restore", "b.db", "--yes"], &scene, &|home| {
        // The old store or the snapshot, whole.
        assert!(on(home, "a.db", &["show", "ses_a"]).expect_status(0).stdout.contains("old"));
        on(home, "a.db", &["check"]).expect_status(0);
        on(home, "a.db", &["restore", "b.db", "--yes"]).expect_status(0);
        assert!(!on(home, "a.db", &["show", "ses_a"]).expect_status(0).stdout.contains("new"));
    });
}

#[test]
fn the_making_of_a_store() {
    at_every_step("a.db", &["init"], &|_| {}, &|home| {
        assert!([0, 4].contains(&on(home, "a.db", &["init"]).status));
        on(home, "a.db", &["check"]).expect_status(0);
        on(home, "a.db", &["post", "s", "x", "--create"]).expect_status(0);
    });
}
