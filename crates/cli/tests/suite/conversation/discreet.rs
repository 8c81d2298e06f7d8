//! No word of a conversation in an error.

use std::fs;

use headwater_testkit::postgres::Cluster;

use super::server::address;
use super::{connect, on};

const CANARY: &str = "canary-7f3a";

/// Rows whose every text but the ids is the word.
fn scene(home: &std::path::Path, db: &str) {
    on(home, db, &["init"]).expect_status(0);
    let text = |columns: &str| {
        columns.split(' ').map(|column| format!("\"{column}\":\"{CANARY}\"")).collect::<Vec<_>>().join(",")
    };
    let time = |columns: &str| {
        columns
            .split(' ')
            .map(|column| format!("\"{column}\":\"2026-01-01 00:00:00+00:00\""))
            .collect::<Vec<_>>()
            .join(",")
    };
    let rows = [
        format!(
            "{{\"table\":\"workspaces\",\"row\":{{\"id\":\"w\",{},{}}}}}",
            text("name"),
            time("created_at updated_at")
        ),
        format!(
            "{{\"table\":\"tasks\",\"row\":{{\"id\":\"t\",\"workspace_id\":\"w\",{},{}}}}}",
            text("title description state metadata"),
            time("created_at updated_at")
        ),
        format!(
            "{{\"table\":\"task_sessions\",\"row\":{{\"id\":\"s\",\"task_id\":\"t\",{},{}}}}}",
            text("name state metadata"),
            time("started_at updated_at")
        ),
        format!(
            "{{\"table\":\"task_session_turns\",\"row\":{{\"id\":\"u\",\"task_session_id\":\"s\",\"task_id\":\"t\",{},{}}}}}",
            text("execution_profile_id metadata"),
            time("started_at created_at updated_at")
        ),
        format!(
            "{{\"table\":\"task_session_messages\",\"row\":{{\"id\":\"m\",\"task_session_id\":\"s\",\"task_id\":\"t\",\"turn_id\":\"u\",{},{}}}}}",
            text("author_type author_id type metadata content"),
            time("created_at updated_at")
        ),
    ];
    let export = format!(
        "{{\"format\":\"headwater-conversation\",\"version\":1}}\n{}\n{{\"end\":{{\"rows\":5}}}}\n",
        rows.join("\n")
    );
    fs::write(home.join("all.jsonl"), &export).unwrap();
    fs::write(home.join("other.jsonl"), export.replace("\"content\":\"", "\"content\":\"other ")).unwrap();
    fs::write(home.join("cut.jsonl"), &export[..export.len() - 100]).unwrap();
    fs::write(
        home.join("orphan.jsonl"),
        export.replace("\"id\":\"m\"", "\"id\":\"m2\"").replace("\"turn_id\":\"u\"", "\"turn_id\":\"none\""),
    )
    .unwrap();
    fs::write(
        home.join("time.jsonl"),
        export.replace("\"id\":\"m\"", "\"id\":\"m3\"").replace("2026-01-01", CANARY),
    )
    .unwrap();
    on(home, db, &["import", "all.jsonl"]).expect_status(0);
}

#[test]
fn nothing_stored_or_given_is_in_an_error_or_a_receipt() {
    let cluster = Cluster::start();
    for db in ["a.db".to_owned(), address(&cluster)] {
        let home = tempfile::tempdir().unwrap();
        scene(home.path(), &db);
        for (arguments, is_refused) in [
            (&["show", "none"][..], true),
            (&["post", "none", CANARY], true),
            (&["post", "s", CANARY, "--id", "m"], true),
            (&["post", "s", CANARY], false),
            (&["post", "new", CANARY, "--create", "--name", CANARY, "--id", "m"], true),
            (&["post", "new", CANARY, "--create", "--name", CANARY], false),
            (&["import", "other.jsonl"], true),
            (&["import", "cut.jsonl"], true),
            (&["import", "orphan.jsonl"], true),
            (&["check"], false),
            (&["cutover"], false),
            (&["init"], false),
        ] {
            for arguments in [arguments.to_vec(), [arguments, &["--json"]].concat()] {
                let done = on(home.path(), &db, &arguments);
                assert!(!is_refused || ![0, 4].contains(&done.status), "{arguments:?}: {done:?}");
                assert!(
                    !done.stderr.contains(CANARY) && !done.stdout.contains(CANARY),
                    "{arguments:?}: {done:?}"
                );
            }
        }
        let done = on(home.path(), &db, &["import", "time.jsonl"]);
        assert!(!done.stderr.contains(CANARY), "{done:?}");
    }
}

#[test]
fn a_damaged_file_is_not_quoted() {
    let home = tempfile::tempdir().unwrap();
    scene(home.path(), "a.db");
    let path = home.path().join("a.db");
    let db = connect(&path);
    db.execute_batch(&format!(
        "WITH RECURSIVE numbers (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < 200)
         INSERT INTO task_session_messages (id, task_session_id, turn_id, content, created_at)
             SELECT 'x' || value, 's', 'u', '{CANARY}' || hex(zeroblob(3000)), '2026-01-01' FROM numbers;
         PRAGMA wal_checkpoint(TRUNCATE);"
    ))
    .unwrap();
    drop(db);
    let sound = fs::read(&path).unwrap();
    for page in (1..sound.len() / 4096).step_by(7) {
        let mut damaged = sound.clone();
        damaged[page * 4096..page * 4096 + 64].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        for arguments in
            [&["check"][..], &["sessions"], &["show", "s", "--limit", "1"], &["post", "s", "x"], &["export"]]
        {
            let done = on(home.path(), "a.db", arguments);
            assert!(!done.stderr.contains(CANARY), "{arguments:?}: {}", done.stderr);
        }
    }
}
