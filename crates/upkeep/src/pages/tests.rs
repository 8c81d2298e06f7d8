//! Rows from pages against the same rows from SQLite.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::open::FileId;

const TABLE: Column = Column { table: "part", name: "data" };

/// How a file is laid out.
#[derive(Clone, Debug)]
struct Shape {
    page_bytes: u32,
    journal: &'static str,
    vacuum: &'static str,
}

#[expect(clippy::disallowed_methods, reason = "stands for a program other than this one")]
fn create(path: &Path, shape: &Shape) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA page_size={}; PRAGMA auto_vacuum={}; PRAGMA journal_mode={}; PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF;
             CREATE TABLE session (id TEXT PRIMARY KEY);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data, later TEXT);",
            shape.page_bytes, shape.vacuum, shape.journal
        ))
        .unwrap();
    connection
}

/// Text of `bytes` bytes that differs from place to place and from `seed` to `seed`.
fn text(bytes: usize, seed: usize) -> String {
    (0..bytes).map(|at| char::from(b'a' + u8::try_from((at / 7 + at * seed + seed) % 26).unwrap())).collect()
}

/// The rows in a range: text where there is one, in the way in which it was found.
type Rows = BTreeMap<i64, Option<Vec<u8>>>;

fn by_pages(
    pages: &mut TablePages<'_>,
    database: &ReadDatabase,
    range: (i64, i64),
) -> Result<Rows, Unreadable> {
    let transaction = database.connection().unchecked_transaction().unwrap();
    let mut rows = Rows::new();
    let mut last = None;
    pages.rows(TABLE, range, &mut |row| {
        assert!(last.is_none_or(|last| last < row.rowid), "ascending");
        last = Some(row.rowid);
        let found = match row.stored {
            Stored::Here(text) => Some(text.to_vec()),
            Stored::Elsewhere(bytes, mut text) => {
                let mut read = Vec::new();
                text.read_to_end(&mut read).map(|_| assert_eq!(read.len() as u64, bytes)).ok().map(|()| read)
            }
            Stored::Other => None,
        };
        rows.insert(row.rowid, found);
        true
    })?;
    transaction.finish().unwrap();
    Ok(rows)
}

fn by_sql(database: &ReadDatabase, (first, last): (i64, i64)) -> Rows {
    let sql = "SELECT rowid, CASE WHEN typeof(data) IN ('text', 'blob') THEN CAST(data AS BLOB) END \
               FROM part WHERE rowid BETWEEN ?1 AND ?2";
    let mut statement = database.connection().prepare(sql).unwrap();
    statement
        .query_map([first, last], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn every_row(database: &ReadDatabase) -> rusqlite::Result<Rows> {
    let sql =
        "SELECT rowid, CASE WHEN typeof(data) IN ('text', 'blob') THEN CAST(data AS BLOB) END FROM part";
    let mut statement = database.connection().prepare(sql)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

#[derive(Clone, Debug)]
enum Step {
    Put { rowid: i64, bytes: usize },
    Number { rowid: i64 },
    Remove { rowid: i64 },
    Vacuum,
    Checkpoint,
}

fn rowids() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..60_i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => -5..0_i64, 1 => Just(1 << 40)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![0..600_usize, 3_900..4_200_usize, 0..40_000_usize, 60_000..140_000_usize];
    let step = prop_oneof![
        8 => (rowids(), bytes).prop_map(|(rowid, bytes)| Step::Put { rowid, bytes }),
        1 => rowids().prop_map(|rowid| Step::Number { rowid }),
        3 => rowids().prop_map(|rowid| Step::Remove { rowid }),
        1 => Just(Step::Vacuum),
        1 => Just(Step::Checkpoint),
    ];
    prop::collection::vec(step, 1..30)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = prop::sample::select(vec![512, 1024, 4096, 4096, 65_536]);
    let journals = prop::sample::select(vec!["wal", "wal", "delete"]);
    let vacuums = prop::sample::select(vec!["none", "full", "incremental"]);
    (sizes, journals, vacuums).prop_map(|(page_bytes, journal, vacuum)| Shape { page_bytes, journal, vacuum })
}

fn apply(connection: &Connection, step: &Step, seed: usize) {
    match step {
        Step::Put { rowid, bytes } => {
            let sql = "INSERT OR REPLACE INTO part (rowid, id, message_id, session_id, data, later) \
                       VALUES (?1, 'prt_' || ?1, 'm', 's', ?2, 'and more')";
            connection.execute(sql, rusqlite::params![rowid, text(*bytes, seed)]).unwrap();
        }
        Step::Number { rowid } => {
            let sql = "INSERT OR REPLACE INTO part (rowid, id, data) VALUES (?1, 'prt_' || ?1, ?1)";
            connection.execute(sql, [rowid]).unwrap();
        }
        Step::Remove { rowid } => {
            connection.execute("DELETE FROM part WHERE rowid = ?1", [rowid]).unwrap();
        }
        Step::Vacuum => connection.execute_batch("VACUUM").unwrap(),
        Step::Checkpoint => {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn rows_are_those_of_sqlite(shape in shapes(), before in steps(), after in steps(), from in rowids(), to in rowids()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let writer = create(&path, &shape);
        for (seed, step) in before.iter().enumerate() {
            apply(&writer, step, seed);
        }
        let database = ReadDatabase::open(&path).unwrap();
        let mut pages = TablePages::of(&database).unwrap();
        let ranges = [(i64::MIN, i64::MAX), (from.min(to), from.max(to)), (0, 30)];
        for range in ranges {
            prop_assert_eq!(by_pages(&mut pages, &database, range).unwrap(), by_sql(&database, range));
        }
        for (seed, step) in after.iter().enumerate() {
            apply(&writer, step, seed + 1000);
            prop_assert_eq!(by_pages(&mut pages, &database, ranges[2]).unwrap(), by_sql(&database, ranges[2]));
        }
    }
}

/// A file whose rows fill some leaves and chains.
fn filled(shape: &Shape) -> (tempfile::TempDir, PathBuf, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let writer = create(&path, shape);
    writer.execute_batch("BEGIN").unwrap();
    for rowid in 0..120 {
        let bytes = [40, 300, 5_000, 30_000][usize::try_from(rowid % 4).unwrap()];
        apply(&writer, &Step::Put { rowid, bytes }, 1);
    }
    writer.execute_batch("COMMIT").unwrap();
    (folder, path, writer)
}

#[test]
fn a_pass_beside_a_writer_sees_one_state() {
    for journal in ["wal", "delete"] {
        let (_folder, path, writer) = filled(&Shape { page_bytes: 4096, journal, vacuum: "none" });
        writer.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        writer.execute_batch("UPDATE part SET data = printf('%012d', 0) || substr(data, 13)").unwrap();
        let is_over = AtomicBool::new(false);
        let (mut passes, mut states) = (0, std::collections::BTreeSet::new());
        std::thread::scope(|scope| {
            let is_over = &is_over;
            scope.spawn(move || {
                for round in 1_u32.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let sql = "UPDATE part SET data = printf('%012d', ?1) || substr(data, 13)";
                    writer.execute(sql, [round]).unwrap();
                    if round % 3 == 0 {
                        // Begins the log anew, sometimes after cutting it; a reader in the way is no error.
                        let mode = if round % 2 == 0 { "RESTART" } else { "TRUNCATE" };
                        writer.busy_timeout(std::time::Duration::ZERO).unwrap();
                        writer.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).unwrap();
                        writer.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
                    }
                }
            });
            let database = ReadDatabase::open(&path).unwrap();
            let mut pages = TablePages::of(&database).unwrap();
            while (passes < 100 || states.len() < 6) && passes < 20_000 {
                // A pass that meets something unexpected is left to SQLite; most must not.
                let Ok(rows) = by_pages(&mut pages, &database, (i64::MIN, i64::MAX)) else {
                    passes += 1;
                    continue;
                };
                assert_eq!(rows.len(), 120);
                let seen: std::collections::BTreeSet<Vec<u8>> =
                    rows.into_values().map(|text| text.unwrap()[..12].to_vec()).collect();
                assert_eq!(seen.len(), 1, "{journal}: {seen:?}");
                states.extend(seen);
                passes += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(states.len() >= 6, "{journal}: {}", states.len());
    }
}

#[test]
fn a_log_that_is_cut_off_or_damaged_counts_up_to_the_last_whole_commit() {
    let (_folder, path, writer) = filled(&Shape { page_bytes: 4096, journal: "wal", vacuum: "none" });
    writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    for rowid in [5, 50, 100] {
        apply(&writer, &Step::Put { rowid, bytes: 9_000 }, 77);
    }
    let (main, log) = (std::fs::read(&path).unwrap(), std::fs::read(path.with_extension("db-wal")).unwrap());
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("opencode.db");
    let mut states = std::collections::BTreeSet::new();
    for at in (0..log.len()).step_by(1777).chain([log.len()]) {
        for is_cut in [true, false] {
            std::fs::write(&copy, &main).unwrap();
            let mut changed = log.clone();
            if is_cut || at == log.len() {
                changed.truncate(at);
            } else {
                changed[at] ^= 0x55;
            }
            std::fs::write(copy.with_extension("db-wal"), changed).unwrap();
            let database = ReadDatabase::open(&copy).unwrap();
            let mut pages = TablePages::of(&database).unwrap();
            let rows = by_pages(&mut pages, &database, (i64::MIN, i64::MAX)).unwrap();
            assert_eq!(rows, by_sql(&database, (i64::MIN, i64::MAX)), "{at} {is_cut}");
            states.insert(rows);
        }
    }
    assert_eq!(states.len(), 4, "every number of commits was seen");
}

#[test]
fn damaged_pages_are_left_to_sqlite_or_read_as_sqlite_reads_them() {
    let (_folder, path, writer) = filled(&Shape { page_bytes: 1024, journal: "delete", vacuum: "none" });
    drop(writer);
    let whole = std::fs::read(&path).unwrap();
    let (mut unreadable, mut same) = (0, 0);
    // The first bytes of a page: what it is, its cells, the next page of a chain.
    for (round, page) in (2..whole.len() / 1024).step_by(5).enumerate() {
        let mut bytes = whole.clone();
        let at = page * 1024 + round % 16;
        bytes[at] = bytes[at].wrapping_add([1, 0x40, 0xff][round % 3]);
        std::fs::write(&path, bytes).unwrap();
        let Ok(database) = ReadDatabase::open(&path) else { continue };
        let mut pages = TablePages::of(&database).unwrap();
        match (by_pages(&mut pages, &database, (i64::MIN, i64::MAX)), every_row(&database)) {
            (Err(Unreadable), _) => unreadable += 1,
            (Ok(_), Err(_)) => {}
            (Ok(found), Ok(expected)) => {
                assert_eq!(found, expected, "byte {at}");
                same += 1;
            }
        }
    }
    assert!(unreadable > 3 && same > 3, "{unreadable} {same}");
}

#[test]
fn a_reader_of_pages_that_ends_drops_no_lock_of_another() {
    let (_folder, path, writer) = filled(&Shape { page_bytes: 4096, journal: "delete", vacuum: "none" });
    drop(writer);
    let is_locked = || {
        let inode = FileId::of(&std::fs::metadata(&path).unwrap()).inode;
        let listed = std::fs::read_to_string("/proc/locks").unwrap();
        let own = std::process::id().to_string();
        listed.lines().any(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.contains(&own.as_str()) && words.iter().any(|word| word.ends_with(&format!(":{inode}")))
        })
    };
    let first = ReadDatabase::open(&path).unwrap();
    let transaction = first.connection().unchecked_transaction().unwrap();
    transaction.query_row("SELECT count(*) FROM part", [], |_| Ok(())).unwrap();
    assert!(is_locked());
    let second = ReadDatabase::open(&path).unwrap();
    let mut pages = TablePages::of(&second).unwrap();
    assert_eq!(by_pages(&mut pages, &second, (0, 200)).unwrap().len(), 120);
    drop(second);
    assert!(is_locked(), "the file was closed while it was locked");
    transaction.finish().unwrap();
    assert!(!is_locked());
    drop(first);
}

/// A variable-length integer in its longest form.
fn nine_bytes(number: u64) -> [u8; 9] {
    let mut bytes = [0; 9];
    bytes[8] = number.to_be_bytes()[7];
    for (at, byte) in bytes[..8].iter_mut().enumerate() {
        *byte = u8::try_from(number >> (57 - 7 * at) & 0x7f).unwrap() | 0x80;
    }
    bytes
}

#[test]
fn a_chain_in_a_circle_ends() {
    let (_folder, path, writer) = filled(&Shape { page_bytes: 4096, journal: "delete", vacuum: "none" });
    writer.execute_batch("DELETE FROM part; VACUUM").unwrap();
    apply(&writer, &Step::Put { rowid: 1, bytes: 100_000 }, 1);
    let root = writer
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'part'", [], |row| row.get::<_, u32>(0))
        .unwrap();
    drop(writer);
    let mut bytes = std::fs::read(&path).unwrap();
    let leaf = (usize::try_from(root).unwrap() - 1) * 4096;
    let found = cells(&bytes[leaf..leaf + 4096], 4096)[0];
    // The first page of its chain leads to itself, and the record says that it has 2^55 bytes.
    let start = leaf + found.start;
    let chained =
        usize::try_from(u32::from_be_bytes(*bytes[start + found.local_bytes..].first_chunk().unwrap()))
            .unwrap();
    let payload = 1_u64 << 55;
    let mut header = nine_bytes(payload).to_vec();
    header.push(1);
    let usable = 4096_u64;
    let shortest = (usable - 12) * 32 / 255 - 23;
    let fitting = shortest + (payload - shortest) % (usable - 4);
    let local = usize::try_from(if fitting <= usable - 35 { fitting } else { shortest }).unwrap();
    // The text reaches to the end of the record: its type is 13 + 2 * bytes.
    let text = payload - 100;
    let mut record = vec![14, 0, 0, 0];
    record.extend_from_slice(&nine_bytes(13 + 2 * text));
    record.push(0);
    record.resize(local, b'a');
    header.extend_from_slice(&record);
    header.extend_from_slice(&u32::try_from(chained).unwrap().to_be_bytes());
    let at = leaf + 4096 - header.len();
    bytes[at..leaf + 4096].copy_from_slice(&header);
    bytes[leaf + 8..leaf + 10].copy_from_slice(&u16::try_from(at - leaf).unwrap().to_be_bytes());
    let next = (chained - 1) * 4096;
    bytes[next..next + 4].copy_from_slice(&u32::try_from(chained).unwrap().to_be_bytes());
    std::fs::write(&path, bytes).unwrap();
    let database = ReadDatabase::open(&path).unwrap();
    let mut pages = TablePages::of(&database).unwrap();
    let transaction = database.connection().unchecked_transaction().unwrap();
    let mut looked_at = 0_u64;
    let outcome = pages.rows(TABLE, (0, 10), &mut |row| {
        if let Stored::Elsewhere(_, mut text) = row.stored {
            let mut buffer = vec![0; 1 << 20];
            // More than the file has is a circle.
            while looked_at < 8 << 20 {
                match text.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(read) => looked_at += read as u64,
                }
            }
        }
        true
    });
    transaction.finish().unwrap();
    assert_eq!((outcome, looked_at), (Err(Unreadable), 0));
}

#[test]
fn a_table_that_is_made_anew_is_read_where_it_stands_now() {
    for journal in ["wal", "delete"] {
        let (_folder, path, writer) = filled(&Shape { page_bytes: 4096, journal, vacuum: "none" });
        let database = ReadDatabase::open(&path).unwrap();
        let mut pages = TablePages::of(&database).unwrap();
        let all = (i64::MIN, i64::MAX);
        assert_eq!(by_pages(&mut pages, &database, all).unwrap(), by_sql(&database, all));
        writer
            .execute_batch(
                "BEGIN;
                 CREATE TABLE made (later TEXT, data, id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT);
                 INSERT INTO made (rowid, later, data, id, message_id, session_id)
                     SELECT rowid, later, data, id, message_id, session_id FROM part;
                 DROP TABLE part;
                 ALTER TABLE made RENAME TO part;
                 COMMIT;",
            )
            .unwrap();
        assert_eq!(by_pages(&mut pages, &database, all).unwrap(), by_sql(&database, all), "{journal}");
        writer
            .execute_batch("ALTER TABLE part DROP COLUMN later; ALTER TABLE part ADD COLUMN more DEFAULT 1")
            .unwrap();
        assert_eq!(by_pages(&mut pages, &database, all).unwrap(), by_sql(&database, all), "{journal}");
    }
}

#[test]
fn a_commit_that_moves_the_table_after_the_transaction_began_leaves_it_to_sqlite() {
    let (_folder, path, writer) = filled(&Shape { page_bytes: 4096, journal: "wal", vacuum: "none" });
    let database = ReadDatabase::open(&path).unwrap();
    let mut pages = TablePages::of(&database).unwrap();
    let transaction = database.connection().unchecked_transaction().unwrap();
    transaction.query_row("SELECT count(*) FROM part", [], |_| Ok(())).unwrap();
    // Another table gets the pages of this one.
    writer
        .execute_batch(
            "BEGIN; CREATE TABLE made AS SELECT * FROM part; DROP TABLE part;
             CREATE TABLE other (id, message_id, session_id, data); INSERT INTO other VALUES (1, 2, 3, 'other');
             ALTER TABLE made RENAME TO part; COMMIT;",
        )
        .unwrap();
    let mut seen = 0;
    let outcome = pages.rows(TABLE, (i64::MIN, i64::MAX), &mut |_| {
        seen += 1;
        true
    });
    transaction.finish().unwrap();
    assert_eq!((outcome, seen), (Err(Unreadable), 0));
    assert_eq!(by_pages(&mut pages, &database, (0, 200)).unwrap(), by_sql(&database, (0, 200)));
}
