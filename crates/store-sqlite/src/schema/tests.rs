//! Files of an agent host become files of the store: whole or not at all, and only once.

use std::fs;

use rusqlite::types::{Value, ValueRef};

use super::*;
use crate::connection::open_writer;
use crate::options::SqliteOptions;

const HOST: &str = include_str!("../../tests/host/tables.sql");
const JOURNAL: &str = include_str!("../../tests/host/journal.sql");

/// Revision triggers of the host itself, with a body of another kind, as a newer one may have them.
const OTHER_TRIGGERS: &str = "
    CREATE TABLE conversation_session_revisions (session_id TEXT PRIMARY KEY, revision BIGINT NOT NULL DEFAULT 0 CHECK (revision >= 0),
        FOREIGN KEY (session_id) REFERENCES task_sessions(id) ON DELETE CASCADE);
    INSERT INTO conversation_session_revisions VALUES ('s', 41);
    CREATE TRIGGER conversation_source_message_insert AFTER INSERT ON task_session_messages
        BEGIN UPDATE conversation_session_revisions SET revision = revision + 1 WHERE session_id = NEW.task_session_id; END;
    CREATE TRIGGER conversation_source_message_update AFTER UPDATE ON task_session_messages
        BEGIN UPDATE conversation_session_revisions SET revision = revision + 1 WHERE session_id = NEW.task_session_id; END;";

/// The shapes in which a file may come: whether it has a journal, whole, half or in part, and what stands beside it.
fn shapes() -> Vec<(&'static str, String)> {
    let both = format!("{HOST}{JOURNAL}");
    let dropped = |statements: &str| format!("{both}{statements}");
    vec![
        ("fresh", String::new()),
        ("host alone", HOST.to_owned()),
        ("journal complete", both.clone()),
        (
            "journal half filled",
            dropped(
                "DELETE FROM conversation_journal_meta WHERE key = 'backfill.complete'; DELETE FROM conversation_turn_versions;",
            ),
        ),
        ("tables alone", dropped(&legacy_drops("TRIGGER"))),
        (
            "some tables are gone",
            dropped("DROP TABLE conversation_session_events; DROP TABLE conversation_journal_meta;"),
        ),
        ("triggers alone", dropped(&legacy_drops("TABLE"))),
        ("both systems", dropped(OTHER_TRIGGERS)),
        ("migrated by the host", format!("{HOST}{OTHER_TRIGGERS}")),
    ]
}

fn legacy_drops(kind: &str) -> String {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(&format!("{HOST}{JOURNAL}")).unwrap();
    let statements = legacy::removal(&db).unwrap();
    statements.into_iter().filter(|sql| sql.contains(kind)).map(|sql| sql + ";").collect()
}

struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    fn new(shape: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = Self { folder };
        host.open().execute_batch(shape).unwrap();
        host
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("host.db")
    }

    fn open(&self) -> Connection {
        let db = open_writer(&self.path(), &SqliteOptions::default()).unwrap();
        // What is held here is what stands in the files, not what a power failure leaves.
        db.pragma_update(None, "synchronous", "OFF").unwrap();
        db
    }

    fn upgrade(&self, reached: Reached<'_>) -> Result<Upgrade, OpenErrorKind> {
        prepare(&mut self.open(), &self.path(), reached)
    }

    /// Every row of the source tables with its bytes, columns by name.
    fn source(&self) -> Vec<(String, Vec<(String, Value)>)> {
        source(&self.open())
    }
}

fn source(db: &Connection) -> Vec<(String, Vec<(String, Value)>)> {
    let mut rows = Vec::new();
    for table in [
        "tasks",
        "task_sessions",
        "task_session_turns",
        "task_session_messages",
        "task_session_prompt_seq",
        "kandev_meta",
    ] {
        let Ok(mut statement) = db.prepare(&format!("SELECT * FROM {table} ORDER BY 1")) else { continue };
        let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let cells = names.iter().enumerate().map(|(column, name)| {
                // Text that is not UTF-8 has to stay too.
                let value = match row.get_ref(column).unwrap() {
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
                    number @ (ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_)) => {
                        Value::try_from(number).unwrap()
                    }
                };
                (name.clone(), value)
            });
            rows.push((table.to_owned(), cells.collect()));
        }
    }
    rows
}

/// What was there before is there after; new columns hold their default.
fn assert_kept(
    name: &str,
    before: &[(String, Vec<(String, Value)>)],
    after: &[(String, Vec<(String, Value)>)],
) {
    assert_eq!(before.len(), after.len(), "{name}");
    for ((table, old), (_, new)) in before.iter().zip(after) {
        for cell in old {
            assert!(new.contains(cell), "{name}: {table}: {cell:?} became {new:?}");
        }
    }
}

fn ensure_upgraded(name: &str, db: &Connection) {
    assert_eq!(legacy::removal(db).unwrap(), Vec::<String>::new(), "{name}");
    let triggers = "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name)";
    let found: String = db.query_row(triggers, [], |row| row.get(0)).unwrap();
    let wanted = "conversation_source_message_delete,conversation_source_message_insert,conversation_source_message_update,\
                  conversation_source_turn_delete,conversation_source_turn_insert,conversation_source_turn_update";
    assert_eq!(found, wanted, "{name}");
    let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok", "{name}");
}

#[test]
fn every_shape_of_a_hosts_file_is_brought_up_to_date_once() {
    for (name, shape) in shapes() {
        let host = Host::new(&shape);
        let before = host.source();
        let had_journal = !legacy::removal(&host.open()).unwrap().is_empty();
        let upgrade = host.upgrade(&mut |_| Ok(())).unwrap();
        assert_kept(name, &before, &host.source());
        ensure_upgraded(name, &host.open());
        assert_eq!(upgrade.backup.is_some(), had_journal, "{name}");
        if let Some(backup) = upgrade.backup {
            let copy = open_writer(&backup, &SqliteOptions::default()).unwrap();
            assert_eq!(source(&copy), before, "{name}: the copy made before");
            assert!(!legacy::removal(&copy).unwrap().is_empty(), "{name}: the copy has the journal");
        }
        let again = host.upgrade(&mut |_| Ok(())).unwrap();
        let nothing = Upgrade { changed_in: again.changed_in, ..Upgrade::default() };
        assert_eq!(again, nothing, "{name}: the second time");
    }
}

#[test]
fn a_change_counts_once_whoever_made_the_triggers() {
    for (name, shape) in shapes() {
        if shape.is_empty() {
            continue;
        }
        let host = Host::new(&shape);
        host.upgrade(&mut |_| Ok(())).unwrap();
        let db = host.open();
        let revision =
            "SELECT ifnull((SELECT revision FROM conversation_session_revisions WHERE session_id = 's'), 0)";
        let before: i64 = db.query_row(revision, [], |row| row.get(0)).unwrap();
        db.execute("UPDATE task_session_messages SET content = 'changed' WHERE id = 'm1'", []).unwrap();
        let after: i64 = db.query_row(revision, [], |row| row.get(0)).unwrap();
        assert_eq!(after, before + 1, "{name}");
    }
}

/// Fails before each statement in turn; and looks at the file as a crash at that instant would leave it.
#[test]
fn an_upgrade_that_stops_anywhere_leaves_the_file_as_it_was() {
    let told_apart = ["fresh", "journal complete", "both systems"];
    for (name, shape) in shapes().into_iter().filter(|(name, _)| told_apart.contains(name)) {
        let mut stop_at = 0;
        loop {
            let host = Host::new(&shape);
            let before = host.source();
            let journal = legacy::removal(&host.open()).unwrap();
            let crashed = tempfile::tempdir().unwrap();
            let mut number = 0;
            let mut reached = |_: &str| {
                if number == stop_at {
                    copy_folder(host.folder.path(), crashed.path());
                    return Err(rusqlite::Error::InvalidQuery);
                }
                number += 1;
                Ok(())
            };
            if host.upgrade(&mut reached).is_ok() {
                break;
            }
            assert_eq!(legacy::removal(&host.open()).unwrap(), journal, "{name}: stopped at {stop_at}");
            assert_kept(name, &before, &host.source());
            let survivor = Host { folder: crashed };
            assert_eq!(legacy::removal(&survivor.open()).unwrap(), journal, "{name}: crashed at {stop_at}");
            for host in [host, survivor] {
                host.upgrade(&mut |_| Ok(())).unwrap();
                assert_kept(name, &before, &host.source());
                ensure_upgraded(name, &host.open());
            }
            stop_at += 1;
        }
        assert!(stop_at >= 6, "{name}: only {stop_at} statements");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn what_only_has_the_name_of_the_journal_stays() {
    let host = Host::new(&format!(
        "{HOST}
         CREATE TABLE mine (x); CREATE VIEW conversation_journal_meta AS SELECT 1;
         CREATE TRIGGER conversation_message_insert AFTER INSERT ON mine BEGIN SELECT 1; END;"
    ));
    let upgrade = host.upgrade(&mut |_| Ok(())).unwrap();
    assert_eq!((upgrade.removed, upgrade.backup), (Vec::new(), None));
    let left = "SELECT count(*) FROM sqlite_schema WHERE name IN ('conversation_journal_meta', 'conversation_message_insert')";
    assert_eq!(host.open().query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
}

#[test]
fn a_schema_of_a_newer_program_is_refused() {
    let host = Host::new("");
    host.upgrade(&mut |_| Ok(())).unwrap();
    host.open()
        .execute("INSERT INTO refinery_schema_history VALUES (999, 'from_the_future', '2027-01-01T00:00:00Z', '1')", [])
        .unwrap();
    assert!(matches!(host.upgrade(&mut |_| Ok(())), Err(OpenErrorKind::Schema(_))));
}

/// A program that writes all the time does not make the copy begin anew.
#[test]
fn a_copy_is_made_beside_a_program_that_writes() {
    let host = Host::new(&format!("{HOST}{JOURNAL}"));
    let writer = host.open();
    writer.execute_batch("CREATE TABLE padding (x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO padding SELECT zeroblob(4000) FROM n").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let stop = &stop;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                drop(writer.execute("UPDATE kandev_meta SET value = value + 1", []));
            }
        });
        let upgrade = host.upgrade(&mut |_| Ok(())).unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let copy = open_writer(&upgrade.backup.unwrap(), &SqliteOptions::default()).unwrap();
        assert!(!legacy::removal(&copy).unwrap().is_empty());
    });
}
