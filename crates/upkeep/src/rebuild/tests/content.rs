//! What the new file holds.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rusqlite::types::Value;

use super::sample::{Sample, content, expected};
use crate::fixture;
use crate::observer::Unobserved;
use crate::rebuild::{RebuildErrorKind, RebuildOptions, Way};

fn assert_rebuilt(sample: &Sample) -> crate::rebuild::RebuildReport {
    let before = content(&sample.path);
    let options = RebuildOptions { force: true, ..RebuildOptions::default() };
    let report = sample.rebuild_with(&options, &Unobserved).unwrap();
    assert_eq!(report.way, Way::Lease);
    assert_eq!(report.log_growth.get(), 0);
    let after = content(&sample.path);
    for (table, rows) in &expected(before.clone()) {
        assert_eq!(after.get(table), Some(rows), "table {table}");
    }
    assert_eq!(after.len(), before.len());
    let db = fixture::connect(&sample.path);
    let answer: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
    report
}

#[test]
fn what_survives_is_there_and_nothing_else() {
    let sample = Sample::new();
    let report = assert_rebuilt(&sample);
    assert!(report.bytes_after < report.bytes_before);
    let event = report.tables.iter().find(|table| table.table == "event").unwrap();
    assert_eq!((event.rows_kept, event.rows_dropped), (224, 176));
    let message = report.tables.iter().find(|table| table.table == "message").unwrap();
    assert_eq!((message.rows_kept, message.rows_rewritten, message.rows_left), (31, 30, 1));
    assert_eq!(sample.names(), ["opencode.db"]);
    assert_eq!(report.bytes_after.get(), fs::metadata(&sample.path).unwrap().len());
}

#[test]
fn rows_in_a_log_that_a_killed_process_left_are_in_the_new_file() {
    let sample = Sample::new();
    let mut server = fixture::OtherProcess::open(&sample.path);
    assert_eq!(server.run(&fixture::v1_session("ses_log")), "ok");
    server.kill();
    assert!(fs::metadata(fixture::with_suffix(&sample.path, "-wal")).unwrap().len() > 0);
    sample.rebuild().unwrap();
    assert_eq!(sample.names(), ["opencode.db"]);
    let found = content(&sample.path);
    assert!(found["session"].iter().any(|row| row[1] == Value::Text("ses_log".into())));
}

#[test]
fn every_kind_of_table_is_kept() {
    let sample = Sample::with("opencode.db", |db| {
        db.execute_batch(
            "CREATE TABLE plain (a, b);
             INSERT INTO plain (rowid, a, b) VALUES (7, x'00ff', 1.5), (-3, NULL, 'text'), (9000000000, 1, '');
             CREATE TABLE keyed (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
             INSERT INTO keyed VALUES ('b', 2), ('a', x'01');
             CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT CHECK (v <> 'never'));
             INSERT INTO counted (v) VALUES ('one'), ('two'), ('three');
             DELETE FROM counted WHERE v = 'three';
             CREATE TABLE computed (a INTEGER, b INTEGER AS (a * 2) STORED, c TEXT AS (a || 'x'), d TEXT);
             INSERT INTO computed (a, d) VALUES (1, 'd'), (2, 'e');
             CREATE TABLE hidden (rowid TEXT, x INTEGER);
             INSERT INTO hidden VALUES ('not the rowid', 1), ('neither', 2);
             CREATE TABLE \"odd \"\"name\" (\"col umn\" TEXT UNIQUE, \"select\" BLOB);
             INSERT INTO \"odd \"\"name\" VALUES ('v', zeroblob(10));
             CREATE TABLE empty (a TEXT PRIMARY KEY);
             CREATE TABLE grown (a); INSERT INTO grown VALUES (1);
             ALTER TABLE grown ADD COLUMN b TEXT DEFAULT 'later';
             CREATE VIRTUAL TABLE words USING fts5(body);
             INSERT INTO words (rowid, body) VALUES (5, 'find me'), (77, 'and me');
             CREATE VIEW seen AS SELECT a FROM plain;
             CREATE TRIGGER fires AFTER INSERT ON plain BEGIN DELETE FROM keyed; END;
             CREATE INDEX by_expression ON plain (abs(b)) WHERE a IS NOT NULL;
             PRAGMA user_version = 42; PRAGMA application_id = 77; ANALYZE;",
        )
        .unwrap();
        db.execute("INSERT INTO plain (rowid, a) VALUES (8, CAST(x'ff62' AS TEXT))", []).unwrap();
        db.execute("DELETE FROM plain WHERE rowid = 8", []).unwrap();
        db.execute("INSERT INTO keyed VALUES ('after trigger', 3)", []).unwrap();
    });
    assert_rebuilt(&sample);
    let db = fixture::connect(&sample.path);
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("PRAGMA user_version"), 42);
    assert_eq!(number("PRAGMA application_id"), 77);
    assert_eq!(number("SELECT rowid FROM words WHERE words MATCH 'find'"), 5);
    assert_eq!(number("SELECT count(*) FROM seen"), 3);
    assert_eq!(number("SELECT seq FROM sqlite_sequence WHERE name = 'counted'"), 3);
    assert!(number("SELECT count(*) FROM sqlite_stat1") > 5);
    db.execute("INSERT INTO plain (a) VALUES (1)", []).unwrap();
    assert_eq!(number("SELECT count(*) FROM keyed"), 0, "the trigger works again");
}

#[test]
fn text_that_is_not_utf8_keeps_its_bytes() {
    let sample = Sample::with("opencode.db", |db| {
        db.execute("UPDATE event SET data = CAST(x'22ff8022' AS TEXT) WHERE rowid = 5", []).unwrap();
    });
    sample.rebuild().unwrap();
    let db = fixture::connect(&sample.path);
    let bytes: (String, String) = db
        .query_row("SELECT hex(data), typeof(data) FROM event WHERE rowid = 5", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(bytes, ("22FF8022".into(), "text".into()));
}

#[test]
fn large_rows_pass_in_pieces_whatever_stands_behind_them() {
    let sample = Sample::with("opencode.db", |db| {
        db.execute_batch(
            "UPDATE event SET data = data || hex(randomblob(3000000)) WHERE rowid IN (5, 200, 399);
             ALTER TABLE event ADD COLUMN created INTEGER; ALTER TABLE event ADD COLUMN note TEXT;
             ALTER TABLE event ADD COLUMN share REAL; ALTER TABLE event ADD COLUMN raw BLOB;
             UPDATE event SET created = -70000, note = 'short', share = 0.25, raw = x'0102' WHERE rowid = 5;
             UPDATE event SET created = 1790000000000, raw = 1 WHERE rowid = 200;
             UPDATE event SET note = printf('%.200c', 'n') WHERE rowid = 399;
             CREATE TABLE pieces (a BLOB, b INTEGER, c BLOB);
             INSERT INTO pieces VALUES (randomblob(2500000), 3, NULL), (randomblob(2500000), 4, randomblob(2500000));",
        )
        .unwrap();
    });
    assert_rebuilt(&sample);
}

#[test]
fn owner_mode_and_attributes_are_kept_and_a_symlink_stays_one() {
    let sample = Sample::new();
    fs::set_permissions(&sample.path, fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&sample.path, Some(1234), Some(4321)).unwrap();
    }
    let named = rustix::fs::setxattr(&sample.path, "user.note", b"kept", rustix::fs::XattrFlags::empty());
    let link = sample.folder.path().join("link.db");
    symlink("opencode.db", &link).unwrap();
    let before = fs::metadata(&sample.path).unwrap();
    super::sample::rebuild(&link, &RebuildOptions::default(), &Unobserved).unwrap();
    let after = fs::metadata(&sample.path).unwrap();
    assert_ne!(before.ino(), after.ino());
    assert_eq!((before.uid(), before.gid(), before.mode()), (after.uid(), after.gid(), after.mode()));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    if named.is_ok() {
        let mut value = [0_u8; 16];
        let length = rustix::fs::getxattr(&sample.path, "user.note", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"kept");
    }
    assert_eq!(fs::read(&sample.path).unwrap()[18..20], [2, 2], "still a write-ahead log");
}

#[test]
fn a_database_with_a_rollback_journal_keeps_it() {
    let sample = Sample::with("a path\nwith %20 ?and#.db", |db| {
        db.pragma_update(None, "journal_mode", "delete").unwrap();
    });
    assert_rebuilt(&sample);
    assert_eq!(fs::read(&sample.path).unwrap()[18..20], [1, 1]);
    assert_eq!(sample.names().len(), 1);
}

#[test]
fn a_plan_that_changed_since_it_was_confirmed_is_refused() {
    let sample = Sample::new();
    let confirmed = super::sample::plan(&fixture::connect(&sample.path));
    fixture::connect(&sample.path).execute("DELETE FROM event WHERE rowid = 1", []).unwrap();
    let before = fs::read(&sample.path).unwrap();
    let options = RebuildOptions { confirmed: Some(confirmed), ..RebuildOptions::default() };
    let refused = sample.rebuild_with(&options, &Unobserved).unwrap_err();
    assert!(matches!(refused, RebuildErrorKind::PlanChanged), "{refused}");
    assert_eq!(fs::read(&sample.path).unwrap(), before);
    assert_eq!(sample.names(), ["opencode.db"]);
}
