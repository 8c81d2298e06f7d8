//! What is no conversation store, and what cannot be posted.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use headwater_testkit::sqlite3::Shell;

use super::{connect, fill, on};
use crate::bad_input::{open_folder, run_as_nobody};
use crate::folder::Contents;
use crate::program::{Run, command, run};
use crate::scene;

const VERBS: [&[&str]; 9] = [
    &["sessions"],
    &["show", "s"],
    &["post", "s", "x"],
    &["cutover", "--yes"],
    &["check"],
    &["backup", "copy.db"],
    &["export"],
    &["import", "all.jsonl"],
    &["restore", "x.db", "--yes"],
];

const EXPORT: &str = "{\"format\":\"headwater-conversation\",\"version\":1}\n{\"end\":{\"rows\":0}}\n";

/// Its name, the exit status and the code of the error, and what makes it.
type Scene = (&'static str, i32, &'static str, fn(&Path));

#[test]
fn every_verb_refuses_what_is_no_store_with_one_clear_error() {
    let scenes: [Scene; 7] = [
        ("nothing", 1, "not-found", |_| {}),
        ("a folder", 5, "directory", |home| fs::create_dir(home.join("x.db")).unwrap()),
        ("an empty file", 5, "empty-file", |home| fs::write(home.join("x.db"), "").unwrap()),
        ("a text", 5, "not-a-database", |home| fs::write(home.join("x.db"), [b'x'; 9000]).unwrap()),
        ("an empty database", 5, "not-a-store", |home| {
            connect(&home.join("x.db")).execute_batch("CREATE TABLE t (x); DROP TABLE t").unwrap();
        }),
        ("OpenCode's", 5, "opencode-database", |home| {
            fs::rename(scene::database(home), home.join("x.db")).unwrap();
        }),
        ("of a newer program", 5, "newer-store", |home| {
            on(home, "x.db", &["init"]).expect_status(0);
            let db = connect(&home.join("x.db"));
            db.execute_batch("INSERT INTO refinery_schema_history VALUES (7, 'later', '2099-01-01', '1')")
                .unwrap();
        }),
    ];
    for (name, status, code, make) in scenes {
        let home = tempfile::tempdir().unwrap();
        make(home.path());
        fs::write(home.path().join("all.jsonl"), EXPORT).unwrap();
        let before = Contents::of(home.path());
        for verb in VERBS {
            let refused = on(home.path(), "x.db", &[verb, &["--json"][..]].concat());
            if verb == ["export"] {
                assert_eq!(on(home.path(), "x.db", verb).status, status, "{name}");
                continue;
            }
            assert_eq!(
                (refused.status, &refused.json()["error"]["code"]),
                (status, &code.into()),
                "{verb:?} on {name}"
            );
            assert_one_error(&refused);
            assert_eq!(Contents::of(home.path()), before, "{verb:?} on {name}");
        }
    }
}

fn assert_one_error(run: &Run) {
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].starts_with("error: ") && lines[1].starts_with("hint: "),
        "{}",
        run.stderr
    );
}

#[test]
fn the_other_verbs_say_what_a_conversation_store_is_for() {
    let home = tempfile::tempdir().unwrap();
    on(home.path(), "a.db", &["init"]).expect_status(0);
    for verb in
        [&["stats"][..], &["sessions"], &["prune", "--class", "events", "--yes"], &["rebuild", "--yes"]]
    {
        let refused = run(home.path(), verb.iter().chain(&["--db", "a.db"])).expect_status(5);
        assert!(refused.stderr.contains("headwater conversation"), "{}", refused.stderr);
    }
    // And a restore takes no other database for a snapshot, nor the place of one.
    fs::rename(scene::database(home.path()), home.path().join("opencode.db")).unwrap();
    on(home.path(), "a.db", &["restore", "opencode.db", "--yes"]).expect_status(5);
    on(home.path(), "opencode.db", &["restore", "a.db", "--yes"]).expect_status(5);
    on(home.path(), "opencode.db", &["init", "--adopt"]).expect_status(5);
}

#[test]
fn a_message_that_cannot_be_written_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    let before = on(home.path(), "a.db", &["export"]).stdout;
    for (arguments, status, code) in [
        (&["post", "ses_none", "x"][..], 2, "unknown-session"),
        (&["post", "ses_a", "x", "--turn", "turn_b1"], 3, "duplicate-id"),
        (&["post", "ses_a", "x", "--id", "b1"], 3, "duplicate-id"),
        (&["post", "ses_new", "x", "--create", "--id", "b1"], 3, "duplicate-id"),
        (&["show", "ses_none"], 2, "unknown-session"),
        (&["show", "ses_a", "--after", "b1"], 2, "unknown-boundary"),
    ] {
        let refused = on(home.path(), "a.db", &[arguments, &["--json"]].concat());
        assert_eq!(
            (refused.status, &refused.json()["error"]["code"]),
            (status, &code.into()),
            "{arguments:?}"
        );
    }
    for (bytes, code) in [
        (vec![b'x'; (16 << 20) + 1], "too-large"),
        (vec![b'a', 0], "nul-character"),
        (vec![0xff], "not-utf8"),
    ] {
        let mut child = command(home.path())
            .args(["conversation", "post", "ses_a", "--json", "--db", "a.db"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // One that has read enough goes away.
        drop(std::io::Write::write_all(&mut input, &bytes));
        drop(input);
        let refused = Run::from(child.wait_with_output().unwrap()).expect_status(2);
        assert_eq!(refused.json()["error"]["code"], code);
    }
    assert_eq!(on(home.path(), "a.db", &["export"]).stdout, before);
}

#[test]
fn a_store_that_is_locked_or_may_not_be_written_is_named_with_the_way_out() {
    let home = open_folder();
    fill(home.path(), "a.db");
    let mut shell = Shell::open(&home.path().join("a.db"));
    shell.run("BEGIN IMMEDIATE;");
    let refused = on(home.path(), "a.db", &["post", "ses_a", "x", "--json"]).expect_status(3);
    assert_eq!(refused.json()["error"]["code"], "busy");
    on(home.path(), "a.db", &["sessions"]).expect_status(0);
    on(home.path(), "a.db", &["backup", "b.db"]).expect_status(0);
    assert_eq!(
        on(home.path(), "a.db", &["restore", "b.db", "--yes", "--json"]).expect_status(3).json()["error"]["code"],
        "in-use"
    );
    drop(shell);
    // Removes the log that the killed program left.
    on(home.path(), "a.db", &["post", "ses_a", "x"]).expect_status(0);

    let mode =
        |mode| fs::set_permissions(home.path().join("a.db"), fs::Permissions::from_mode(mode)).unwrap();
    let folder = |mode| fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).unwrap();
    on(home.path(), "a.db", &["sessions"]).expect_status(0);
    folder(0o755);
    mode(0o444);
    assert_eq!(as_nobody(home.path(), &["post", "ses_a", "x"]), 1);
    assert_eq!(as_nobody(home.path(), &["sessions"]), 0);
    mode(0o666);
    folder(0o555);
    assert_eq!(as_nobody(home.path(), &["post", "ses_a", "x"]), 1);
    assert_eq!(as_nobody(home.path(), &["sessions"]), 0);
    mode(0o000);
    assert_eq!(as_nobody(home.path(), &["sessions"]), 1);
    folder(0o755);
}

/// The status of a verb as a user without rights.
fn as_nobody(home: &Path, arguments: &[&str]) -> i32 {
    run_as_nobody(home, ["conversation"].iter().chain(arguments).chain(&["--db", "a.db"])).status
}
