//! A small database with everything a file may hold, a plan made by hand, and ways to run a rebuild on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use headwater_prune::{Class, Classes};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::fixture;
use crate::observer::{Observer, Unobserved};
use crate::plan::{ClassTotal, Plan, Precision, TableFate};
use crate::rebuild::rewrite::{Rewriter, Unrewritable};
use crate::rebuild::{Rebuild, RebuildErrorKind, RebuildOptions, RebuildReport};

/// A database in a folder of its own.
pub(super) struct Sample {
    pub(super) folder: tempfile::TempDir,
    pub(super) path: PathBuf,
}

/// Events, and which of them go: runs long enough to be jumped over, short ones, and single rows.
const EVENTS: i64 = 400;

pub(super) fn event_goes(id: i64) -> bool {
    (id % 10 < 3) || (100..180).contains(&id)
}

impl Sample {
    /// In write-ahead-log mode, closed cleanly.
    pub(super) fn new() -> Self {
        Self::with("opencode.db", |_| {})
    }

    pub(super) fn with(name: &str, more: impl FnOnce(&Connection)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fixture::database(&path, &fixture::v1_session("ses_a"));
        let db = fixture::connect(&path);
        fill(&db);
        more(&db);
        db.close().unwrap();
        Self { folder, path }
    }

    pub(super) fn rebuild(&self) -> Result<RebuildReport, RebuildErrorKind> {
        self.rebuild_with(&RebuildOptions::default(), &Unobserved)
    }

    pub(super) fn rebuild_with(
        &self,
        options: &RebuildOptions,
        observer: &dyn Observer,
    ) -> Result<RebuildReport, RebuildErrorKind> {
        rebuild(&self.path, options, observer)
    }

    /// Names in the folder.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

pub(super) fn rebuild(
    path: &Path,
    options: &RebuildOptions,
    observer: &dyn Observer,
) -> Result<RebuildReport, RebuildErrorKind> {
    let planner = |db: &Connection, _: &crate::schema::Schema| Ok(plan(db));
    Rebuild { options, planner: &planner, on_plan: &|_, _| true, rewriter: &Shorten, observer }.run(path)
}

fn fill(db: &Connection) {
    db.execute_batch("BEGIN; INSERT INTO event_sequence VALUES ('ses_a', 400, NULL)").unwrap();
    for id in 1..=EVENTS {
        let data = format!("{{\"canary\":\"event {id} {}\"}}", "e".repeat(3000));
        db.execute(
            "INSERT INTO event VALUES (?1, 'ses_a', ?2, 'message.updated.1', ?3)",
            (format!("evt_{id:06}"), id, data),
        )
        .unwrap();
    }
    for id in 0..30 {
        let data = format!("{{\"keep\":{id},\"patch\":\"{}\"}}", "d".repeat(900));
        db.execute("INSERT INTO message VALUES (?1, 'ses_a', 1, 2, ?2)", (format!("msg_{id:03}"), data))
            .unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
}

/// What the sample loses: some events, and the patches of every message.
pub(super) fn plan(db: &Connection) -> Plan {
    let ids = |sql: &str| -> Vec<i64> {
        let mut statement = db.prepare(sql).unwrap();
        let ids = statement.query_map([], |row| row.get(0)).unwrap();
        ids.map(Result::unwrap).collect()
    };
    let set = |ids: Vec<i64>| ids.into_iter().map(i64::cast_unsigned).collect();
    let mut plan = Plan::default();
    let events = ids("SELECT rowid FROM event").into_iter().filter(|id| event_goes(*id)).collect();
    let event = TableFate {
        dropped: BTreeMap::from([(Class::SupersededEvents, set(events))]),
        rewritten: BTreeMap::new(),
    };
    let message = TableFate {
        dropped: BTreeMap::new(),
        rewritten: BTreeMap::from([(Class::Diffs, set(ids("SELECT rowid FROM message")))]),
    };
    let total = ClassTotal {
        rows_dropped: event.dropped[&Class::SupersededEvents].len(),
        bytes: ByteCount::new(100_000),
        precision: Precision::Exact,
        ..ClassTotal::default()
    };
    plan.totals.insert(Class::SupersededEvents, total);
    plan.fates = BTreeMap::from([("event", event), ("message", message)]);
    plan
}

/// Stands for the rules of a class: takes the member `patch`, refuses what has none.
pub(super) struct Shorten;

impl Rewriter for Shorten {
    fn rewrite(
        &self,
        table: &str,
        _: Option<&str>,
        data: &[u8],
        classes: Classes,
    ) -> Result<Option<Vec<u8>>, Unrewritable> {
        assert_eq!((table, classes), ("message", Classes::NONE.with(Class::Diffs)));
        let at = data.windows(9).position(|bytes| bytes == b",\"patch\":").ok_or(Unrewritable)?;
        Ok(Some([&data[..at], b"}"].concat()))
    }
}

/// Every row of every table, with its rowid where it has one.
pub(super) fn content(path: &Path) -> BTreeMap<String, Vec<Vec<Value>>> {
    content_of(&fixture::connect(path))
}

pub(super) fn content_of(db: &Connection) -> BTreeMap<String, Vec<Vec<Value>>> {
    let mut statement = db
        .prepare(
            "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')",
        )
        .unwrap();
    let tables: Vec<(String, bool)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let mut content = BTreeMap::new();
    for (table, without_rowid) in tables {
        let rowid = if without_rowid { "" } else { "rowid, " };
        // `sqlite_schema` names root pages, which move.
        let columns = if table == "sqlite_schema" { "type, name, tbl_name, sql" } else { "*" };
        let rowid = if table == "sqlite_schema" { "" } else { rowid };
        let sql = format!("SELECT {rowid}{columns} FROM \"{}\" ORDER BY 1, 2", table.replace('"', "\"\""));
        let mut statement = db.prepare(&sql).unwrap();
        let width = statement.column_count();
        let rows = statement.query_map([], |row| (0..width).map(|column| row.get(column)).collect()).unwrap();
        content.insert(table, rows.map(Result::unwrap).collect());
    }
    content
}

/// The content that the sample must have after a rebuild, from what it had before.
pub(super) fn expected(mut before: BTreeMap<String, Vec<Vec<Value>>>) -> BTreeMap<String, Vec<Vec<Value>>> {
    before.get_mut("event").unwrap().retain(|row| !matches!(row[0], Value::Integer(id) if event_goes(id)));
    for row in before.get_mut("message").unwrap() {
        if let Value::Text(data) = &mut row[5]
            && let Some(at) = data.find(",\"patch\":")
        {
            data.truncate(at);
            data.push('}');
        }
    }
    before
}
