//! A store in PostgreSQL.

use std::process::Command;

use headwater_testkit::postgres::Cluster;
use headwater_testkit::program::find;

use super::{HOST, fill, host, on};
use crate::program::{command, run};

/// The address of a new database, as `--db` takes it.
pub(super) fn address(cluster: &Cluster) -> String {
    let words = cluster.create_database();
    let name = words.rsplit('=').next().unwrap();
    format!("postgres://postgres@localhost/{name}?host={}", cluster.socket().display())
}

/// Runs statements past the store, and answers what they print.
pub(super) fn psql(address: &str, sql: &str) -> String {
    let psql = find("psql", "package postgresql-client on Debian and Ubuntu");
    let arguments = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"];
    let output = Command::new(psql).arg(address).args(arguments).args(["-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_verb_works_on_a_server() {
    let cluster = Cluster::start();
    let db = address(&cluster);
    let home = tempfile::tempdir().unwrap();
    assert_eq!(
        on(home.path(), &db, &["sessions", "--json"]).expect_status(5).json()["error"]["code"],
        "not-a-store"
    );
    fill(home.path(), &db);
    on(home.path(), &db, &["init"]).expect_status(4);
    let listed = on(home.path(), &db, &["sessions", "--json"]).expect_status(0).json_lines();
    assert_eq!(
        (&listed[0]["session"]["id"], &listed[0]["session"]["messages"]),
        (&"ses_a".into(), &2.into())
    );
    assert_eq!(listed[1]["session"]["messages"], 251);
    let shown = on(home.path(), &db, &["show", "ses_a"]).expect_status(0).stdout;
    assert!(shown.contains("what is left to do?") && shown.contains("two\nlines"), "{shown}");
    let page = on(home.path(), &db, &["show", "ses_b", "--json", "--limit", "120", "--after", "b0099"])
        .expect_status(0);
    assert_eq!(page.json_lines()[0]["message"]["id"], "b0100");
    let found = on(home.path(), &db, &["check", "--json"]).expect_status(0).json();
    assert_eq!(found["result"]["findings"], serde_json::json!([]));
    psql(&db, "ALTER TABLE task_session_turns DISABLE TRIGGER headwater_turns_inserted");
    let found = on(home.path(), &db, &["check", "--json"]).expect_status(5).json();
    assert_eq!(found["result"]["findings"][0]["code"], "triggers");
    on(home.path(), &db, &["cutover", "--yes"]).expect_status(0);
    on(home.path(), &db, &["check"]).expect_status(0);
    for (verb, program) in [("backup", "pg_dump"), ("restore", "pg_restore")] {
        let refused = on(home.path(), &db, &[verb, "b.db"]).expect_status(2);
        assert!(refused.stderr.contains(program), "{}", refused.stderr);
    }
}

#[test]
fn reading_changes_no_table_of_a_server() {
    let cluster = Cluster::start();
    let db = address(&cluster);
    let home = tempfile::tempdir().unwrap();
    // A host's tables, without anything of this program.
    psql(&db, &HOST.replace("DATETIME", "TIMESTAMP").split("INSERT INTO tasks").next().unwrap().replace(
        "CREATE TABLE kandev_meta",
        "CREATE TABLE conversation_journal_meta (key TEXT PRIMARY KEY, value TEXT); CREATE TABLE kandev_meta",
    ));
    let schema = "SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    let before = psql(&db, schema);
    for verb in [
        &["sessions"][..],
        &["show", "s"],
        &["export"],
        &["check"],
        &["post", "s", "x"],
        &["init", "--adopt"],
    ] {
        on(home.path(), &db, verb).expect_status(3);
        assert_eq!(psql(&db, schema), before, "{verb:?}");
    }
    let planned = on(home.path(), &db, &["cutover", "--json"]).expect_status(2).json_lines();
    assert_eq!(planned[0]["plan"]["journal"][0]["name"], "conversation_journal_meta");
    assert_eq!(psql(&db, schema), before);
    on(home.path(), &db, &["cutover", "--yes"]).expect_status(0);
    on(home.path(), &db, &["cutover", "--yes"]).expect_status(4);
    on(home.path(), &db, &["sessions"]).expect_status(4);
    assert!(!psql(&db, schema).contains("journal"));
}

#[test]
fn an_export_goes_from_a_file_to_a_server_and_back_to_the_byte() {
    let cluster = Cluster::start();
    let db = address(&cluster);
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), "a.db");
    let export = |db: &str, name: &str| {
        on(home.path(), db, &["export", "--output", name]).expect_status(0);
        std::fs::read(home.path().join(name)).unwrap()
    };
    let first = export("a.db", "1.jsonl");
    on(home.path(), &db, &["init"]).expect_status(0);
    on(home.path(), &db, &["import", "1.jsonl"]).expect_status(0);
    on(home.path(), &db, &["import", "1.jsonl"]).expect_status(4);
    assert!(export(&db, "2.jsonl") == first);
    on(home.path(), "b.db", &["init"]).expect_status(0);
    on(home.path(), "b.db", &["import", "2.jsonl"]).expect_status(0);
    assert!(export("b.db", "3.jsonl") == first);
    on(home.path(), &db, &["check"]).expect_status(0);

    // What a typed column cannot keep is told before anything is written.
    host(home.path(), HOST);
    on(home.path(), "host.db", &["cutover", "--yes"]).expect_status(0);
    on(home.path(), "host.db", &["export", "--output", "host.jsonl"]).expect_status(0);
    let other = address(&cluster);
    on(home.path(), &other, &["init"]).expect_status(0);
    let refused = on(home.path(), &other, &["import", "host.jsonl", "--json"]).expect_status(3).json();
    assert_eq!(refused["error"]["code"], "not-storable");
    on(home.path(), &other, &["sessions"]).expect_status(4);
}

#[test]
fn a_server_that_refuses_or_is_not_there_is_one_clear_error_without_the_password() {
    let cluster = Cluster::start();
    let home = tempfile::tempdir().unwrap();
    let socket = cluster.socket().display().to_string();
    let reachable =
        |user: &str, name: &str| format!("postgres://{user}:hidden-pw@localhost/{name}?host={socket}");
    for (db, status, code) in [
        (format!("postgres://me:hidden-pw@localhost/x?host={}", home.path().display()), 1, "unreachable"),
        ("postgres://me:hidden-pw@127.0.0.1:1/x".to_owned(), 1, "unreachable"),
        (reachable("postgres", "no_such_database"), 1, "not-found"),
        (reachable("no_such_user", "postgres"), 1, "permission-denied"),
        ("postgres://me:hidden-pw@localhost:port/x".to_owned(), 2, "address"),
    ] {
        for verb in [&["sessions"][..], &["init"], &["post", "s", "x"], &["cutover", "--yes"], &["check"]] {
            let refused = on(home.path(), &db, &[verb, &["--json"]].concat()).expect_status(status);
            assert_eq!(refused.json()["error"]["code"], code, "{verb:?} {}", refused.stderr);
            assert!(!refused.stderr.contains("hidden-pw") && !refused.stdout.contains("hidden-pw"));
            assert_eq!(refused.stderr.lines().count(), 2, "{}", refused.stderr);
        }
    }
    // The variable is another way to name it.
    let output = command(home.path())
        .args(["conversation", "sessions"])
        .env("HEADWATER_CONVERSATION_DB", reachable("postgres", "postgres"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    run(home.path(), ["conversation", "sessions", "--db", "postgres"]).expect_status(1);
}
