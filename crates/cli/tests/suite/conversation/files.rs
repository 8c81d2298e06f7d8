//! A store in a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{fill, on};
use crate::folder::Contents;
use crate::program::{command, run};

#[test]
fn a_store_is_made_once_and_filled_read_and_listed() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    on(home.path(), "a.db", &["init"]).expect_status(4);
    let mode = fs::metadata(home.path().join("a.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names = fs::read_dir(home.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("a.db-"));
    assert_eq!(names.count(), 0, "no log is left");

    let listed = on(home.path(), "a.db", &["sessions", "--json"]).expect_status(0).json_lines();
    assert_eq!(listed.len(), 3);
    let (first, second) = (&listed[0]["session"], &listed[1]["session"]);
    assert_eq!(
        (&first["id"], &first["messages"], &first["revision"]),
        (&"ses_a".into(), &2.into(), &"3".into())
    );
    assert_eq!(
        (&second["id"], &second["messages"], &second["revision"]),
        (&"ses_b".into(), &251.into(), &"252".into())
    );
    assert_eq!(first["name"], "Release");
    let page = on(home.path(), "a.db", &["sessions", "--json", "--limit", "1"]).expect_status(0).json_lines();
    assert_eq!((page.len(), &page[1]["result"]["has_more"]), (2, &true.into()));
    let rest =
        on(home.path(), "a.db", &["sessions", "--json", "--after", "ses_a"]).expect_status(0).json_lines();
    assert_eq!((rest.len(), &rest[0]["session"]["id"]), (2, &"ses_b".into()));
    on(home.path(), "a.db", &["sessions", "--after", "ses_b"]).expect_status(4);

    let shown = on(home.path(), "a.db", &["show", "ses_a"]).expect_status(0).stdout;
    assert!(
        shown.contains("what is left to do?") && shown.contains("two\nlines") && shown.contains("revision 3"),
        "{shown}"
    );
    let turns =
        on(home.path(), "a.db", &["show", "ses_a", "--turns", "--json"]).expect_status(0).json_lines();
    assert_eq!((turns.len(), &turns[0]["turn"]["id"]), (2, &"turn_m1".into()));
    let prompts = on(home.path(), "a.db", &["show", "ses_b", "--author", "user", "--json"]).expect_status(0);
    assert_eq!(prompts.json()["result"]["shown"], 1);
}

#[test]
fn pages_of_a_session_meet_without_a_gap() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    let ids = |arguments: &[&str]| {
        let lines = on(home.path(), "a.db", arguments).expect_status(0).json_lines();
        let ids: Vec<String> =
            lines.iter().filter_map(|line| Some(line["message"]["id"].as_str()?.to_owned())).collect();
        (ids, lines.last().unwrap()["result"].clone())
    };
    let (all, end) = ids(&["show", "ses_b", "--json"]);
    assert_eq!((all.len(), &end["has_more"], &end["revision"]), (251, &false.into(), &"252".into()));
    let (mut paged, mut end) = ids(&["show", "ses_b", "--json", "--limit", "120"]);
    while let Some(next) = end["next"].as_str() {
        let (page, after) = ids(&["show", "ses_b", "--json", "--limit", "120", "--after", next]);
        paged.extend(page);
        end = after;
    }
    assert_eq!(paged, all);
    let (before, _) = ids(&["show", "ses_b", "--json", "--before", "b0000", "--limit", "5"]);
    assert_eq!(before, ["b1"]);
    let (before, end) = ids(&["show", "ses_b", "--json", "--before", "b0100", "--limit", "2"]);
    assert_eq!((before, &end["has_more"]), (vec!["b0098".to_owned(), "b0099".to_owned()], &true.into()));
    let (after, _) = ids(&["show", "ses_b", "--json", "--after", "b0247"]);
    assert_eq!(after, ["b0248", "b0249"]);
}

#[test]
fn a_message_is_posted_once_and_its_receipt_tells_what_happened() {
    let home = tempfile::tempdir().unwrap();
    on(home.path(), "a.db", &["init"]).expect_status(0);
    let post = |text: &str| on(home.path(), "a.db", &["post", "s", text, "--id", "m", "--create", "--json"]);
    let posted = post("hello").expect_status(0).json()["result"].clone();
    assert_eq!(
        (&posted["created"], &posted["base"], &posted["revision"]),
        (&true.into(), &"0".into(), &"2".into())
    );
    assert_eq!(posted["operations"].as_array().unwrap().len(), 2);
    let again = post("hello").expect_status(0).json()["result"].clone();
    assert_eq!((&again["base"], &again["revision"]), (&"2".into(), &"2".into()));
    assert_eq!(post("other").expect_status(3).json()["error"]["code"], "duplicate-id");
    // From standard input, and to a file of the standard place.
    let mut child = command(home.path())
        .args(["conversation", "post", "s", "--author", "agent", "--db", "a.db"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"from a pipe").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(on(home.path(), "a.db", &["show", "s"]).expect_status(0).stdout.contains("from a pipe"));
    run(home.path(), ["conversation", "init"]).expect_status(0);
    assert!(home.path().join(".local/share/headwater/conversations.db").is_file());
    run(home.path(), ["conversation", "sessions"]).expect_status(4);
}

#[test]
fn reading_leaves_no_trace() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    // A program that was killed leaves a log.
    let db = super::connect(&home.path().join("a.db"));
    db.execute_batch("PRAGMA wal_autocheckpoint = 0; UPDATE task_sessions SET name = 'in the log'").unwrap();
    let copy = home.path().join("b.db");
    for ending in ["", "-wal"] {
        let name = |path: &std::path::Path| format!("{}{ending}", path.display());
        fs::copy(name(&home.path().join("a.db")), name(&copy)).unwrap();
    }
    drop(db);
    let before = Contents::of(home.path());
    for verb in [
        &["sessions"][..],
        &["show", "ses_a"],
        &["show", "ses_a", "--turns"],
        &["export"],
        &["check"],
        &["show", "ses_none"],
    ] {
        let done = on(home.path(), "b.db", verb);
        assert!(done.status == 0 || verb[1..] == ["ses_none"], "{done:?}");
        assert_eq!(Contents::of(home.path()), before, "{verb:?}");
    }
    assert!(on(home.path(), "b.db", &["sessions"]).stdout.contains("in the log"));
}

#[test]
fn a_snapshot_takes_the_place_of_the_store() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    on(home.path(), "a.db", &["backup", "b.db"]).expect_status(0);
    on(home.path(), "a.db", &["backup", "b.db"]).expect_status(3);
    on(home.path(), "a.db", &["post", "ses_a", "later"]).expect_status(0);
    on(home.path(), "a.db", &["restore", "b.db"]).expect_status(2);
    let restored = on(home.path(), "a.db", &["restore", "b.db", "--yes", "--json"]).expect_status(0).json();
    assert!(restored["result"]["previous"].as_str().unwrap().ends_with("a.db.before-restore-1"));
    let shown = on(home.path(), "a.db", &["show", "ses_a"]).expect_status(0).stdout;
    assert!(!shown.contains("later"), "{shown}");
    on(home.path(), "a.db", &["post", "ses_a", "after the restore"]).expect_status(0);
    on(home.path(), "gone.db", &["restore", "b.db", "--yes"]).expect_status(0);
    on(home.path(), "gone.db", &["check"]).expect_status(0);
}

#[test]
fn a_check_finds_what_another_program_broke() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    on(home.path(), "a.db", &["check"]).expect_status(0);
    let db = super::connect(&home.path().join("a.db"));
    db.execute_batch(
        "PRAGMA foreign_keys = OFF; DELETE FROM task_sessions WHERE id = 'ses_a';
         DROP TRIGGER conversation_source_turn_insert;",
    )
    .unwrap();
    drop(db);
    let found = on(home.path(), "a.db", &["check", "--json"]).expect_status(5).json();
    let findings = found["result"]["findings"].as_array().unwrap();
    let codes: Vec<_> = findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["triggers", "orphans", "orphans", "orphan-prompt-numbers", "orphan-revisions"]);
    // Writing waits until the triggers are back.
    let refused = on(home.path(), "a.db", &["post", "ses_b", "x", "--json"]).expect_status(3).json();
    assert_eq!(refused["error"]["code"], "needs-cutover");
    on(home.path(), "a.db", &["cutover", "--yes"]).expect_status(0);
    on(home.path(), "a.db", &["post", "ses_b", "x"]).expect_status(0);
}
