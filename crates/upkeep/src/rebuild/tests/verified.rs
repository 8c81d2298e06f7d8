//! What only one of the checks of the new file finds.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use headwater_prune::Class;
use rusqlite::Connection;

use super::paused::temporary_of;
use super::sample::{Sample, Shorten, content, plan};
use crate::fixture;
use crate::observer::{Observer, Unobserved};
use crate::plan::{Plan, TableFate};
use crate::rebuild::temporary::TemporaryFile;
use crate::rebuild::{Rebuild, RebuildErrorKind, RebuildOptions, Step, copy, new_file, shape, verify};

/// Damages the new file once the step is reached.
struct Damaging<'a, F: Fn(&Path)>(Step, Mutex<(&'a Path, F)>);

impl<F: Fn(&Path) + Send> Observer for Damaging<'_, F> {
    fn reached(&self, step: &'static str) {
        if step == self.0.name() {
            let damage = self.1.lock().unwrap();
            (damage.1)(&temporary_of(damage.0));
        }
    }
}

/// A rebuild with this plan and observer fails with this reason, and the database is as it was.
fn assert_fails(sample: &Sample, plan: fn(&Connection) -> Plan, observer: &dyn Observer, reason: &str) {
    let before = content(&sample.path);
    let planner = |db: &Connection, _: &crate::schema::Schema| Ok(plan(db));
    let options = RebuildOptions { force: true, ..RebuildOptions::default() };
    let rebuild =
        Rebuild { options: &options, planner: &planner, on_plan: &|_, _| true, rewriter: &Shorten, observer };
    let refused = rebuild.run(&sample.path).unwrap_err();
    assert!(
        matches!(&refused, RebuildErrorKind::Verification(what) if what.contains(reason)),
        "{refused}, not: {reason}"
    );
    assert!(content(&sample.path) == before);
    assert_eq!(sample.names(), ["opencode.db"]);
}

fn dropping(table: &'static str, rowids: impl IntoIterator<Item = u64>) -> Plan {
    let dropped = BTreeMap::from([(Class::SupersededEvents, rowids.into_iter().collect())]);
    let fate = TableFate { dropped, rewritten: BTreeMap::new() };
    Plan { fates: BTreeMap::from([(table, fate)]), ..Plan::default() }
}

#[test]
fn a_plan_that_takes_a_session_and_leaves_its_messages_is_noticed_by_the_references() {
    let without_session = |_: &Connection| dropping("session", [1]);
    assert_fails(&Sample::new(), without_session, &Unobserved, "would lose what they refer to");
}

#[test]
fn a_plan_that_takes_rows_that_are_not_there_is_noticed_by_their_number() {
    let with_a_stranger = |_: &Connection| dropping("event", [1, 2, 1_000_000]);
    assert_fails(&Sample::new(), with_a_stranger, &Unobserved, "the number of rows of table event");
}

#[test]
fn an_index_of_the_new_file_with_a_wrong_entry_is_noticed_by_the_integrity_check() {
    let sample = Sample::with("opencode.db", |db| {
        db.execute_batch("CREATE TABLE pairs (a, b); INSERT INTO pairs VALUES (1, 2), (3, 4); CREATE INDEX by_a ON pairs (a)")
            .unwrap();
    });
    let flip = |new: &Path| {
        let db = fixture::connect(new);
        let (root, page_bytes): (i64, i64) = db
            .query_row(
                "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'by_a'",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        db.close().unwrap();
        let end = (root * page_bytes).cast_unsigned();
        // The last byte of the page ends the entry that was written first: the rowid that it points to.
        let file = File::options().read(true).write(true).open(new).unwrap();
        let mut last = [0];
        file.read_exact_at(&mut last, end - 1).unwrap();
        file.write_all_at(&[last[0] ^ 0x40], end - 1).unwrap();
    };
    let observer = Damaging(Step::Indexed, Mutex::new((&sample.path, flip)));
    assert_fails(&sample, plan, &observer, "table pairs fails integrity_check");
}

#[test]
fn an_entry_that_the_schema_of_the_new_file_lacks_is_named() {
    for (statement, name) in [
        ("DROP INDEX by_a", "index by_a"),
        ("DROP TRIGGER fires", "trigger fires"),
        ("DROP VIEW seen", "view seen"),
        ("DROP TABLE pairs", "of table pairs"),
        (
            "DROP TRIGGER fires; CREATE TRIGGER fires AFTER INSERT ON pairs BEGIN SELECT 2; END",
            "trigger fires",
        ),
        ("CREATE VIEW more AS SELECT 1", "view more"),
    ] {
        let sample = Sample::with("opencode.db", |db| {
            db.execute_batch(
                "CREATE TABLE pairs (a UNIQUE, b); INSERT INTO pairs VALUES (1, 2), (3, 4);
                 CREATE INDEX by_a ON pairs (a); CREATE VIEW seen AS SELECT a FROM pairs;
                 CREATE TRIGGER fires AFTER INSERT ON pairs BEGIN SELECT 1; END",
            )
            .unwrap();
        });
        let damage = move |new: &Path| {
            let db = fixture::connect(new);
            db.execute_batch(statement).unwrap();
            db.close().unwrap();
        };
        let observer = Damaging(Step::Indexed, Mutex::new((&sample.path, damage)));
        assert_fails(&sample, plan, &observer, name);
    }
}

#[test]
fn a_table_that_the_copier_passes_over_is_noticed() {
    let sample = Sample::new();
    let source = fixture::connect(&sample.path);
    let new = TemporaryFile::create(&sample.path).unwrap();
    let mut tables = copy::tables(&source, &Plan::default()).unwrap();
    new_file::create(&source, new.path()).unwrap();
    tables.retain(|table| table.shape.name != "part");
    copy::copy(&source, new.path(), &mut tables, &Shorten).unwrap();
    let db = new_file::open(new.path()).unwrap();
    new_file::finish_schema(&db, &shape::entries(&source).unwrap()).unwrap();
    db.close().unwrap();
    let failed = verify::verify(&source, new.path(), &mut tables, &Unobserved).unwrap_err();
    assert!(
        matches!(&failed, RebuildErrorKind::Verification(what) if what.contains("table part was not copied")),
        "{failed}"
    );
}
