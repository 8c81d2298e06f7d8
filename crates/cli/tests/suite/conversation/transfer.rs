//! Out of a store and into another one.

use std::fs;

use super::{HOST, fill, host, on, source_rows};

#[test]
fn an_export_is_the_same_after_an_import() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    let export = |db: &str, arguments: &[&str]| {
        on(home.path(), db, &[&["export"], arguments].concat()).expect_status(0).stdout
    };
    let all = export("a.db", &[]);
    fs::write(home.path().join("all.jsonl"), &all).unwrap();
    on(home.path(), "b.db", &["init"]).expect_status(0);
    let done =
        on(home.path(), "b.db", &["import", "all.jsonl", "--json"]).expect_status(0).json()["result"].clone();
    assert_eq!(done["certified"], done["batches"]);
    assert_eq!(export("b.db", &[]), all);
    let again =
        on(home.path(), "b.db", &["import", "all.jsonl", "--json"]).expect_status(4).json()["result"].clone();
    assert_eq!((&again["added"], &again["present"]), (&0.into(), &done["rows"]));
    on(home.path(), "b.db", &["check"]).expect_status(0);

    // One session, with what owns it.
    let one = export("a.db", &["ses_b"]);
    assert!(one.lines().count() == 258 && !one.contains("release"), "{}", one.lines().count());
    fs::write(home.path().join("one.jsonl"), &one).unwrap();
    on(home.path(), "c.db", &["init"]).expect_status(0);
    on(home.path(), "c.db", &["import", "one.jsonl"]).expect_status(0);
    assert_eq!(export("c.db", &[]), one);
    on(home.path(), "a.db", &["export", "ses_none"]).expect_status(2);
    // The next prompt goes on behind the last number.
    on(home.path(), "c.db", &["post", "ses_b", "next"]).expect_status(0);
    let shown = on(home.path(), "c.db", &["show", "ses_b", "--author", "user", "--json"])
        .expect_status(0)
        .json_lines();
    assert_eq!(shown[1]["message"]["promptIndex"], 2);
}

#[test]
fn odd_rows_of_a_host_are_the_same_after_an_import() {
    let home = tempfile::tempdir().unwrap();
    let path = host(home.path(), HOST);
    on(home.path(), "host.db", &["cutover", "--yes"]).expect_status(0);
    on(home.path(), "host.db", &["export", "--output", "host.jsonl"]).expect_status(0);
    on(home.path(), "own.db", &["init"]).expect_status(0);
    on(home.path(), "own.db", &["import", "host.jsonl"]).expect_status(0);
    let own = home.path().join("own.db");
    let db = super::connect(&own);
    // Columns that only the host has, so that both can be read alike.
    db.execute_batch(
        "ALTER TABLE task_sessions ADD COLUMN error_message TEXT DEFAULT '';
         CREATE TABLE kandev_meta (key TEXT, value TEXT); INSERT INTO kandev_meta VALUES ('version', '1');",
    )
    .unwrap();
    drop(db);
    assert_eq!(source_rows(&own), source_rows(&path));
}

#[test]
fn what_contradicts_the_store_or_is_no_export_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    on(home.path(), "a.db", &["export", "--output", "all.jsonl"]).expect_status(0);
    on(home.path(), "a.db", &["export", "--output", "all.jsonl"]).expect_status(3);
    on(home.path(), "a.db", &["export", "--output", "all.jsonl", "--force"]).expect_status(0);
    on(home.path(), "a.db", &["export", "--output", "a.db", "--force"]).expect_status(3);
    let all = fs::read_to_string(home.path().join("all.jsonl")).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let shorter = [&lines[..5], &lines[6..]].concat().join("\n");
    on(home.path(), "b.db", &["init"]).expect_status(0);
    for (name, text, status, code) in [
        ("empty", "", 5, "cut-off"),
        ("cut off", cut.as_str(), 5, "cut-off"),
        ("half a line", &all[..all.len() / 2], 5, "malformed"),
        ("a line is missing", &shorter, 5, "malformed"),
        ("no export", "{\"format\":\"headwater-export\",\"version\":1}\n", 5, "malformed"),
        ("newer", "{\"format\":\"headwater-conversation\",\"version\":9}\n", 5, "newer-format"),
    ] {
        fs::write(home.path().join("bad.jsonl"), text).unwrap();
        let refused =
            on(home.path(), "b.db", &["import", "bad.jsonl", "--json"]).expect_status(status).json();
        assert_eq!(refused["error"]["code"], code, "{name}");
        on(home.path(), "b.db", &["sessions"]).expect_status(4);
    }
    // The same ids with other content: nothing of it, the rows before it included, is written.
    let other =
        all.replace("answer 249", "something else").replace("\"id\":\"release\"", "\"id\":\"release2\"");
    fs::write(home.path().join("other.jsonl"), other).unwrap();
    let before = on(home.path(), "a.db", &["export"]).stdout;
    let refused = on(home.path(), "a.db", &["import", "other.jsonl"]).expect_status(3);
    assert!(
        refused.stderr.contains("task_session_messages") && !refused.stderr.contains("something"),
        "{}",
        refused.stderr
    );
    assert_eq!(on(home.path(), "a.db", &["export"]).stdout, before);
    on(home.path(), "a.db", &["import", "none.jsonl"]).expect_status(1);
    on(home.path(), "none.db", &["import", "all.jsonl"]).expect_status(1);
}
