//! Databases of an agent host, with and without its journal.

use std::fs;
use std::os::unix::fs::symlink;

use headwater_testkit::sqlite3::Shell;

use super::{HOST, JOURNAL, host, on, source_rows};
use crate::folder::Contents;

/// The shapes in which a file may come, and whether a journal is in it.
fn shapes() -> Vec<(&'static str, String, bool)> {
    let drops = |kind: &str| {
        let names: &[&str] = if kind == "TRIGGER" {
            &[
                "conversation_message_insert",
                "conversation_message_update",
                "conversation_message_delete",
                "conversation_turn_insert",
                "conversation_turn_complete",
                "conversation_turn_delete",
                "conversation_session_delete",
            ]
        } else {
            &[
                "conversation_session_events",
                "conversation_message_versions",
                "conversation_turn_versions",
                "conversation_session_streams",
                "conversation_journal_meta",
            ]
        };
        names.iter().map(|name| format!("DROP {kind} {name};")).collect::<Vec<_>>().concat()
    };
    let revisions = "CREATE TABLE conversation_session_revisions (session_id TEXT PRIMARY KEY, revision BIGINT NOT NULL DEFAULT 0,
            FOREIGN KEY (session_id) REFERENCES task_sessions(id) ON DELETE CASCADE);
        CREATE TRIGGER conversation_source_message_insert AFTER INSERT ON task_session_messages
        BEGIN UPDATE conversation_session_revisions SET revision = revision + 1 WHERE session_id = NEW.task_session_id; END;";
    let both = format!("{HOST}{JOURNAL}");
    vec![
        ("complete", both.clone(), true),
        (
            "half",
            format!(
                "{both}DELETE FROM conversation_journal_meta WHERE key = 'backfill.complete'; DELETE FROM conversation_turn_versions;"
            ),
            true,
        ),
        (
            "partial",
            format!(
                "{both}DROP TRIGGER conversation_turn_delete; DROP TABLE conversation_turn_versions; DROP TABLE conversation_journal_meta;"
            ),
            true,
        ),
        ("triggers alone", format!("{both}{}", drops("TABLE")), true),
        ("tables alone", format!("{both}{}", drops("TRIGGER")), true),
        ("both systems", format!("{both}{revisions}"), true),
        ("no journal", HOST.to_owned(), false),
        ("migrated by the host", format!("{HOST}{revisions}"), false),
    ]
}

#[test]
fn every_shape_is_taken_over_once_and_its_rows_stay_to_the_byte() {
    for (name, sql, has_journal) in shapes() {
        let home = tempfile::tempdir().unwrap();
        let path = host(home.path(), &sql);
        let before = source_rows(&path);
        let bytes = fs::read(&path).unwrap();
        let planned = on(home.path(), "host.db", &["cutover", "--json"]).expect_status(2);
        let plan = &planned.json_lines()[0]["plan"];
        assert_eq!(plan["journal"].as_array().unwrap().is_empty(), !has_journal, "{name}: {plan}");
        assert!(fs::read(&path).unwrap() == bytes, "{name}: a plan changes nothing");

        let done = on(home.path(), "host.db", &["cutover", "--yes", "--json"]).expect_status(0).json();
        assert_eq!(source_rows(&path), before, "{name}");
        let backup = done["result"]["backup"].as_str();
        assert_eq!(backup.is_some(), has_journal, "{name}");
        if let Some(backup) = backup {
            assert_eq!(source_rows(&home.path().join(backup)), before, "{name}");
        }
        on(home.path(), "host.db", &["cutover", "--yes"]).expect_status(4);
        on(home.path(), "host.db", &["check"]).expect_status(0);
        assert!(on(home.path(), "host.db", &["show", "s"]).expect_status(0).stdout.contains("two"), "{name}");
        on(home.path(), "host.db", &["post", "s", "new"]).expect_status(0);
    }
}

#[test]
fn a_hosts_file_is_read_or_refused_but_never_changed_before_the_cutover() {
    let home = tempfile::tempdir().unwrap();
    host(home.path(), &format!("{HOST}{JOURNAL}"));
    let before = Contents::of(home.path());
    for verb in [
        &["sessions"][..],
        &["show", "s"],
        &["export"],
        &["check"],
        &["post", "s", "x"],
        &["init"],
        &["init", "--adopt"],
    ] {
        let refused = on(home.path(), "host.db", &[verb, &["--json"]].concat());
        if verb != ["export"] {
            assert_eq!(
                (refused.status, &refused.json()["error"]["code"]),
                (3, &"needs-cutover".into()),
                "{verb:?}"
            );
        }
        assert_eq!(Contents::of(home.path()), before, "{verb:?}");
    }
    let other = tempfile::tempdir().unwrap();
    host(other.path(), HOST);
    assert_eq!(
        on(other.path(), "host.db", &["init", "--json"]).expect_status(3).json()["error"]["code"],
        "exists"
    );
    on(other.path(), "host.db", &["init", "--adopt"]).expect_status(0);
    on(other.path(), "host.db", &["init", "--adopt"]).expect_status(4);
    on(other.path(), "host.db", &["sessions"]).expect_status(0);
}

#[test]
fn a_host_that_still_runs_is_named() {
    let home = tempfile::tempdir().unwrap();
    let path = host(home.path(), &format!("{HOST}{JOURNAL}"));
    let shell = Shell::open(&path);
    let refused = on(home.path(), "host.db", &["cutover", "--yes"]).expect_status(3);
    assert!(refused.stderr.contains(&format!("sqlite3 ({})", shell.pid())), "{}", refused.stderr);
    drop(shell);
    on(home.path(), "host.db", &["cutover", "--yes"]).expect_status(0);
}

#[test]
fn only_the_three_files_of_the_host_go_and_no_link_is_followed() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let folder = home.path().join("plugins/.host");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir(&data).unwrap();
    let path = host(&data, &format!("{HOST}{JOURNAL}"));
    let db = path.to_str().unwrap();
    for name in [
        "session-events.sqlite",
        "session-events.sqlite-wal",
        "session-events.sqlite-shm",
        "conversation-token.key",
    ] {
        fs::write(folder.join(name), name).unwrap();
    }
    on(home.path(), db, &["cutover"]).expect_status(2);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
    on(home.path(), db, &["cutover", "--yes"]).expect_status(0);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["conversation-token.key"]);

    symlink(folder.join("conversation-token.key"), folder.join("session-events.sqlite")).unwrap();
    let refused = on(home.path(), db, &["cutover", "--yes", "--json"]).expect_status(3).json();
    assert_eq!(refused["error"]["code"], "host-file");
    assert!(
        folder.join("session-events.sqlite").is_symlink() && folder.join("conversation-token.key").is_file()
    );
}
