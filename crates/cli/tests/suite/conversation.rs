//! `headwater conversation`: a store in a file and in PostgreSQL, as people use it.

mod cutover;
mod discreet;
mod files;
mod killed;
mod refused;
mod server;
mod shapes;
mod transfer;

use std::path::{Path, PathBuf};

use crate::program::{Run, run};

const HOST: &str = include_str!("../../../store-sqlite/tests/host/tables.sql");
const JOURNAL: &str = include_str!("../../../store-sqlite/tests/host/journal.sql");

/// Posts the first message of a new session.
const FIRST: [&str; 10] = [
    "post",
    "ses_a",
    "what is left to do?",
    "--id",
    "m1",
    "--create",
    "--task",
    "release",
    "--name",
    "Release",
];

/// Runs a verb on the store `db` in `home`.
fn on(home: &Path, db: &str, arguments: &[&str]) -> Run {
    run(home, ["conversation"].iter().chain(arguments).chain(&["--db", db]))
}

/// A store with two sessions, the second of them with more than a page of messages.
fn fill(home: &Path, db: &str) {
    on(home, db, &["init"]).expect_status(0);
    on(home, db, &FIRST).expect_status(0);
    on(home, db, &["post", "ses_a", "two\nlines", "--id", "m2", "--author", "agent"]).expect_status(0);
    on(home, db, &["post", "ses_b", "prompt", "--id", "b1", "--create", "--workspace", "w"]).expect_status(0);
    let row = |number: u32| {
        format!(
            r#"{{"table":"task_session_messages","row":{{"id":"b{number:04}","task_session_id":"ses_b","task_id":"ses_b","turn_id":"turn_b1","author_type":"agent","author_id":"","requests_input":0,"type":"message","prompt_seq":0,"created_at":"2099-01-01 00:00:00+00:00","updated_at":"2099-01-01 00:00:00+00:00","metadata":"{{}}","content":"answer {number}"}}}}"#
        )
    };
    let rows: Vec<String> = (0..250).map(row).collect();
    let export = format!(
        "{{\"format\":\"headwater-conversation\",\"version\":1}}\n{}\n{{\"end\":{{\"rows\":250}}}}\n",
        rows.join("\n")
    );
    std::fs::write(home.join("more.jsonl"), export).unwrap();
    let done = on(home, db, &["import", "more.jsonl", "--json"]).expect_status(0).json();
    assert_eq!(done["result"]["added"], 250);
    assert_eq!(done["result"]["certified"], done["result"]["batches"]);
}

/// A file of an agent host, made by the statements of `sql`.
fn host(home: &Path, sql: &str) -> PathBuf {
    let path = home.join("host.db");
    let db = connect(&path);
    db.execute_batch(sql).unwrap();
    db.close().unwrap();
    path
}

#[expect(clippy::disallowed_methods, reason = "a test plays the other program")]
fn connect(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

/// Every row of the tables that a host's conversations are in, column by column, as the shell of SQLite quotes values.
fn source_rows(path: &Path) -> Vec<String> {
    let db = connect(path);
    let mut all = Vec::new();
    for (table, columns) in [
        ("tasks", "id, workspace_id, title, description, created_at, updated_at"),
        (
            "task_sessions",
            "id, state, task_id, error_message, metadata, started_at, completed_at, updated_at",
        ),
        (
            "task_session_turns",
            "id, task_session_id, task_id, started_at, completed_at, metadata, created_at, updated_at",
        ),
        (
            "task_session_messages",
            "content, id, task_session_id, task_id, turn_id, author_type, author_id, type, metadata, created_at, updated_at",
        ),
        ("kandev_meta", "key, value"),
    ] {
        let quoted: Vec<String> =
            columns.split(", ").map(|column| format!("typeof({column}) || hex({column})")).collect();
        let sql = format!("SELECT {} FROM {table} ORDER BY 1", quoted.join(" || '|' || "));
        let mut statement = db.prepare(&sql).unwrap();
        all.extend(statement.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap));
    }
    all
}
