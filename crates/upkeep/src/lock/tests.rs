use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use super::*;

const V1: &str = "CREATE TABLE session (id text PRIMARY KEY, time_updated integer);
    CREATE TABLE message (id text PRIMARY KEY, session_id text, data text);
    CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);";

#[test]
fn a_held_lock_is_busy_and_a_free_one_commits_or_rolls_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut locks = ShortLocks::new(&writer, LockPolicy::IMMEDIATE).unwrap();
    let other = plain_connection(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = locks.run(|_| Ok::<_, LockError>(Step::Commit(()))).unwrap_err();
    assert!(matches!(error, LockError::Busy), "{error}");
    assert_eq!(locks.report().transactions, 0);
    other.execute_batch("ROLLBACK").unwrap();

    let insert = |held: &Held<'_>, id: &str| {
        held.connection().execute("INSERT INTO part (id, data) VALUES (?1, '')", [id])
    };
    locks
        .run(|held| {
            insert(held, "kept")?;
            Ok::<_, LockError>(Step::Commit(()))
        })
        .unwrap();
    locks
        .run(|held| {
            insert(held, "rolled back")?;
            Ok::<_, LockError>(Step::Rollback(()))
        })
        .unwrap();
    let failed = locks.run(|held| {
        insert(held, "failed")?;
        Err::<Step<()>, _>(LockError::Busy)
    });
    assert!(failed.is_err());
    let ids: String = other.query_row("SELECT group_concat(id) FROM part", [], |row| row.get(0)).unwrap();
    assert_eq!(ids, "kept");
    assert_eq!(locks.report().transactions, 3);
    assert!(locks.report().longest_lock_us > 0);
}

#[test]
fn the_lock_stays_free_between_two_transactions() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let writer = WriteDatabase::open(&path, Duration::from_secs(5)).unwrap();
    let mut locks = ShortLocks::new(&writer, LockPolicy::BATCH).unwrap();
    // The other writer is refused once while the first transaction holds the lock, then tries without pause. It gets the lock only if
    // the second transaction leaves it free.
    let (refused, is_refused) = mpsc::channel();
    let mut other = None;
    locks
        .run(|held| {
            held.connection().execute("INSERT INTO part (id, data) VALUES ('first', '')", [])?;
            let path = path.clone();
            other = Some(thread::spawn(move || insert_as_soon_as_possible(&path, &refused)));
            is_refused.recv().unwrap();
            while !held.is_due() {}
            Ok::<_, LockError>(Step::Commit(()))
        })
        .unwrap();
    locks
        .run(|held| {
            held.connection().execute("INSERT INTO part (id, data) VALUES ('second', '')", [])?;
            Ok::<_, LockError>(Step::Commit(()))
        })
        .unwrap();
    other.unwrap().join().unwrap();
    let order: String = writer
        .connection()
        .query_row("SELECT group_concat(id) FROM (SELECT id FROM part ORDER BY rowid)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(order, "first,other,second");
}

#[test]
fn a_log_that_a_reader_pins_is_reported_and_reclaimed_after_it_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let reader = plain_connection(&path);
    reader.execute_batch("BEGIN; SELECT count(*) FROM part").unwrap();
    let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let policy = LockPolicy { log_bytes_max: ByteCount::from_mib(1), ..LockPolicy::IMMEDIATE };
    let mut locks = ShortLocks::new(&writer, policy).unwrap();
    let big = "x".repeat(300_000);
    let mut insert = |id: u32| {
        locks.run(|held| {
            held.connection()
                .execute("INSERT INTO part (id, data) VALUES (?1, ?2)", (id.to_string(), &big))?;
            Ok::<_, LockError>(Step::Commit(()))
        })
    };
    let refused_at = (0..20).find_map(|id| insert(id).err().map(|error| (id, error)));
    let Some((id, LockError::LogPinned { log_bytes })) = refused_at else { panic!("{refused_at:?}") };
    assert!(log_bytes > ByteCount::from_mib(1) && log_bytes < ByteCount::from_mib(3), "{log_bytes}");
    let rows: u32 = reader_count(&path);
    assert_eq!(rows, id, "the refused transaction has not begun");

    let error = reclaim_log(&writer, Duration::ZERO).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("not reclaimed: a reader holds the log ({})", iec(log_bytes.get()))
    );
    reader.execute_batch("COMMIT").unwrap();
    let reclaimed = reclaim_log(&writer, Duration::ZERO).unwrap();
    assert_eq!((reclaimed.log_bytes_before, reclaimed.log_bytes_after), (log_bytes, ByteCount::ZERO));
    assert_eq!(reader_count(&path), id);
}

#[test]
fn a_commit_waits_for_the_disk_only_where_there_is_no_log_to_sync_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    for (mode, expected) in [("wal", 1), ("delete", 2)] {
        let _mode: String = plain_connection(&path)
            .query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| row.get(0))
            .unwrap();
        let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
        let locks = ShortLocks::new(&writer, LockPolicy::IMMEDIATE).unwrap();
        let found: u32 =
            writer.connection().pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!(found, expected, "{mode}");
        locks.make_durable().unwrap();
    }
}

/// How commits wait for the disk (`PRAGMA synchronous`: 0 OFF, 1 NORMAL) inside a transaction that inserts the row `id`.
fn synchronous_inside(locks: &mut ShortLocks<'_>, id: &str) -> u32 {
    locks
        .run(|held| {
            held.connection().execute("INSERT INTO part (id, data) VALUES (?1, '')", [id])?;
            let found = held.connection().pragma_query_value(None, "synchronous", |row| row.get(0))?;
            Ok::<_, LockError>(Step::Commit(found))
        })
        .unwrap()
}

/// The first commit into a log writes its header, and that one is synced by SQLite under the lock.
#[test]
fn only_a_commit_into_a_log_that_is_empty_on_disk_does_without_the_sync_of_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let log = folder.path().join("opencode.db-wal");
    let other = plain_connection(&path);
    other.execute_batch("INSERT INTO part (id, data) VALUES ('other', '')").unwrap();
    let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut locks = ShortLocks::new(&writer, LockPolicy::IMMEDIATE).unwrap();
    let after = |locks: &ShortLocks<'_>| -> u32 {
        locks.connection().pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
    };
    assert_eq!(synchronous_inside(&mut locks, "behind another"), 1, "the log holds what is not moved");
    assert_eq!(after(&locks), 1);

    locks.settle();
    assert_ne!(fs::metadata(&log).unwrap().len(), 0);
    assert_eq!(synchronous_inside(&mut locks, "first"), 0, "a log that is moved is emptied first");
    assert_eq!(after(&locks), 1);
    assert_eq!(synchronous_inside(&mut locks, "second"), 1);

    // A reader of the log keeps it from being emptied, and its pages from being overwritten.
    other.execute_batch("BEGIN; SELECT count(*) FROM part").unwrap();
    locks.settle();
    assert_eq!(synchronous_inside(&mut locks, "beside a reader"), 1);
    other.execute_batch("COMMIT").unwrap();
    let rows: u32 = reader_count(&path);
    assert_eq!(rows, 5);
}

/// Filled and emptied by somebody else between the look and the lock: whether the emptiness is on disk is not known.
#[test]
fn a_log_that_somebody_else_emptied_meanwhile_is_not_taken_for_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut log = Log::new(writer.connection(), folder.path().join("opencode.db-wal")).unwrap();
    log.ready();
    assert!(log.trust_emptiness().unwrap() && log.is_as_synced().unwrap());
    let other = plain_connection(&path);
    other
        .execute_batch("INSERT INTO part (id, data) VALUES ('other', ''); PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    assert_eq!(log.bytes(), ByteCount::ZERO);
    assert!(!log.is_as_synced().unwrap());
}

/// A checkpoint under `synchronous=OFF` moves pages into the database before the log is on disk: a power cut then damages it.
#[test]
fn a_lock_that_is_not_had_leaves_nothing_to_go_without_syncs() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let other = plain_connection(&path);
    other
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, u32>(0))
        .map(|busy| assert_eq!(busy, 0))
        .unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut locks = ShortLocks::new(&writer, LockPolicy::IMMEDIATE).unwrap();
    let error = locks.run(|_| Ok::<_, LockError>(Step::Commit(()))).unwrap_err();
    assert!(matches!(error, LockError::Busy), "{error}");
    let after: u32 = locks.connection().pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!(after, 1);
}

fn database(folder: &Path) -> PathBuf {
    let path = folder.join("opencode.db");
    let connection = plain_connection(&path);
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch(V1).unwrap();
    path
}

/// Inserts the row `other`; says once that the lock was refused.
fn insert_as_soon_as_possible(path: &Path, refused: &mpsc::Sender<()>) {
    let connection = plain_connection(path);
    connection.busy_timeout(Duration::ZERO).unwrap();
    let mut is_told = false;
    while let Err(error) =
        connection.execute_batch("BEGIN IMMEDIATE; INSERT INTO part (id, data) VALUES ('other', ''); COMMIT")
    {
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        if !is_told {
            refused.send(()).unwrap();
            is_told = true;
        }
    }
}

fn reader_count(path: &Path) -> u32 {
    plain_connection(path).query_row("SELECT count(*) FROM part", [], |row| row.get(0)).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test plays the other program")]
fn plain_connection(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}
