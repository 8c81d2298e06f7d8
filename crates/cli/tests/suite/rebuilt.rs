//! A rebuild of a database in which every table of both layouts has rows: whatever is not taken is there afterwards, to the byte.

use std::path::Path;

use headwater_testkit::fixture::Fixture;
use headwater_testkit::rows::Rows;

use crate::canary;
use crate::program::run;

/// What is not in rows: the schema, the settings of the header, the counters of AUTOINCREMENT.
fn around(path: &Path) -> Vec<String> {
    let db = Fixture::reopen(path);
    let settings = ["user_version", "application_id", "auto_vacuum", "page_size", "journal_mode", "encoding"];
    let settings = settings.map(|name| db.text(&format!("SELECT '{name} ' || {name} FROM pragma_{name}")));
    let schema = "SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, ''), char(10) ORDER BY name) FROM sqlite_schema";
    let counters = "SELECT group_concat(name || ' ' || seq, char(10) ORDER BY name) FROM sqlite_sequence";
    let found = settings.into_iter().chain([db.text(schema), db.text(counters)]).collect();
    db.close();
    found
}

#[test]
fn every_row_of_every_table_and_everything_around_them_is_kept() {
    for page_size in [4096, 8192] {
        let home = tempfile::tempdir().unwrap();
        let path = canary::scene::database(home.path());
        let db = Fixture::reopen(&path);
        db.sql(&format!(
            "PRAGMA journal_mode = delete; PRAGMA page_size = {page_size}; PRAGMA auto_vacuum = 2; VACUUM; PRAGMA journal_mode = wal;
             PRAGMA user_version = 7; PRAGMA application_id = 77;
             CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT);
             INSERT INTO counted (body) VALUES ('one'), ('two'); DELETE FROM counted WHERE body = 'two';
             CREATE TABLE keyed (k TEXT, n INTEGER, v BLOB, PRIMARY KEY (k, n)) WITHOUT ROWID;
             INSERT INTO keyed VALUES ('b', 2, x'00ff'), ('a', 1, NULL);
             CREATE INDEX keyed_value ON keyed (v) WHERE v IS NOT NULL;
             CREATE VIEW bodies AS SELECT body FROM counted;"
        ));
        db.close();
        let (rows, before) = (Rows::read(&path), around(&path));
        assert_eq!(before[2..4], ["auto_vacuum 2".to_owned(), format!("page_size {page_size}")]);
        run(home.path(), ["rebuild", "--force", "--yes", "--db", "opencode.db"]).expect_status(0);
        assert_eq!(rows.changes(&Rows::read(&path)), Vec::<String>::new());
        assert_eq!(around(&path), before);
        run(home.path(), ["rebuild", "--class", "superseded-events", "--yes", "--db", "opencode.db"])
            .expect_status(0);
        let changes = rows.changes(&Rows::read(&path));
        assert!(!changes.is_empty(), "nothing went");
        let other: Vec<_> = changes
            .iter()
            .filter(|line| !(line.starts_with("event '") && line.ends_with(": gone")))
            .collect();
        assert_eq!(other, Vec::<&String>::new(), "only events go");
        assert_eq!(around(&path), before);
    }
}
