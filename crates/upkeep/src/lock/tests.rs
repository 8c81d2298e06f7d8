use std::path::Path;
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
    assert_eq!(error.to_string(), format!("not reclaimed: a reader holds the log ({log_bytes} bytes)"));
    reader.execute_batch("COMMIT").unwrap();
    let reclaimed = reclaim_log(&writer, Duration::ZERO).unwrap();
    assert_eq!((reclaimed.log_bytes_before, reclaimed.log_bytes_after), (log_bytes, ByteCount::ZERO));
    assert_eq!(reader_count(&path), id);
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
