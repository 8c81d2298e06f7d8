//! Free disk: what is asked for beforehand against what is taken.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headwater_model::ByteCount;
use rusqlite::Connection;

use super::sample::{Sample, plan};
use crate::DatabaseFile;
use crate::fixture;
use crate::plan::Plan;
use crate::rebuild::exclusive::ExclusiveDatabase;
use crate::rebuild::rewrite::Verbatim;
use crate::rebuild::rows::Survivors;
use crate::rebuild::temporary::TemporaryFile;
use crate::rebuild::{Forecast, RebuildErrorKind, copy, new_file, shape};

fn pages(db: &Connection, name: &str) -> u64 {
    let sql = "SELECT pgsize FROM dbstat WHERE name = ?1 AND aggregate = TRUE";
    u64::try_from(db.query_row(sql, [name], |row| row.get::<_, i64>(0)).unwrap()).unwrap()
}

fn forecast(db: &Connection, path: &Path, plan: &Plan) -> Forecast {
    Forecast::of(db, &DatabaseFile::find(path).unwrap(), plan).unwrap()
}

/// Rows of `part`, which the plan of the sample leaves whole, and of `event`, which it does not.
const MANY: &str = "
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
    INSERT INTO part SELECT 'prt_' || i, printf('msg_%.80d', i), 'ses_a', 1, 1, '{}' FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO event SELECT 'evt_x' || i, printf('ses_%.40d', i), i, 'a', '{}' FROM n;";

#[test]
fn the_largest_index_that_is_sorted_counts_and_none_that_is_moved() {
    let sample = Sample::with("opencode.db", |db| db.execute_batch(MANY).unwrap());
    let db = fixture::connect(&sample.path);
    let moved = pages(&db, "part_message_id_id_idx");
    let sorted = pages(&db, "event_aggregate_seq_idx");
    assert!(moved > 2 * sorted && sorted > pages(&db, "message_session_time_created_id_idx"));
    let found = forecast(&db, &sample.path, &plan(&db));
    assert_eq!(found.sort_bytes.get(), sorted + sorted / 16);
    // An index over an expression is built over the rows also where they are moved.
    db.execute_batch("CREATE INDEX computed ON part (message_id || id, session_id)").unwrap();
    let computed = pages(&db, "computed");
    assert!(computed > sorted);
    let found = forecast(&db, &sample.path, &plan(&db));
    assert_eq!(found.sort_bytes.get(), computed + computed / 16);
}

#[test]
fn the_room_is_that_of_the_new_file_and_of_what_lies_beside_it_at_the_same_time() {
    let sample = Sample::with("opencode.db", |db| db.execute_batch(MANY).unwrap());
    let db = fixture::connect(&sample.path);
    let plan = plan(&db);
    let log = || fs::metadata(fixture::with_suffix(&sample.path, "-wal")).map_or(0, |found| found.len());
    let found = forecast(&db, &sample.path, &plan);
    let (after, sort) = (found.bytes_after.get(), found.sort_bytes.get());
    assert_eq!(log(), 0);
    assert_eq!(found.room_by_lease.get(), after + sort);
    assert_eq!(found.room_in_place.get(), after + after);
    // With a log that is larger than what is sorted, that one decides: it is merged when nothing is sorted any more.
    db.execute_batch("UPDATE event SET data = data || ' '").unwrap();
    let found = forecast(&db, &sample.path, &plan);
    assert!(log() > found.sort_bytes.get());
    assert_eq!(found.room_by_lease.get(), found.bytes_after.get() + log());
    assert_eq!(found.room_in_place.get(), 2 * found.bytes_after.get() + log());
}

#[test]
fn a_disk_without_room_for_what_is_sorted_is_refused() {
    let sample = Sample::with("opencode.db", |db| db.execute_batch(MANY).unwrap());
    let db = fixture::connect(&sample.path);
    let mut found = forecast(&db, &sample.path, &plan(&db));
    let needed = found.bytes_after.get() + found.sort_bytes.get() + (16 << 20);
    found.free_disk = ByteCount::new(needed);
    found.ensure_room(false).unwrap();
    found.free_disk = ByteCount::new(needed - 1);
    let refused = found.ensure_room(false).unwrap_err();
    assert!(
        matches!(refused, RebuildErrorKind::NoRoom { needed_bytes, free_bytes }
            if needed_bytes == needed && free_bytes == needed - 1),
        "{refused}"
    );
}

/// Bytes of the temporary files that this process has open in `folder`. SQLite has taken their names away.
fn temporary_bytes(folder: &Path) -> u64 {
    let open = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let temporary = open.filter(|link| {
        fs::read_link(link).is_ok_and(|target| {
            target.parent() == Some(folder)
                && target.file_name().is_some_and(|name| name.as_bytes().starts_with(b"etilqs_"))
        })
    });
    temporary.map(|link| fs::metadata(link).map_or(0, |found| found.len())).sum()
}

/// Most bytes in temporary files in the database's folder while the indexes of its copy are built, and what was forecast.
fn sorted_bytes(path: &Path) -> (u64, u64) {
    let locked = ExclusiveDatabase::lock(DatabaseFile::find(path).unwrap()).unwrap();
    let source = locked.connection();
    let folder = locked.file().folder().to_owned();
    let plan = plan(source);
    let forecast = Forecast::of(source, locked.file(), &plan).unwrap();
    let new = TemporaryFile::create(path).unwrap();
    let mut tables = copy::tables(source, &plan).unwrap();
    for table in &mut tables {
        if table.shape.name == "message" {
            // Verbatim has no rule for its rows.
            table.survivors = Survivors::default();
        }
    }
    new_file::create(source, new.path()).unwrap();
    copy::copy(source, new.path(), &mut tables, &Verbatim).unwrap();
    let db = new_file::open(new.path()).unwrap();
    let most = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&most);
    db.progress_handler(
        10_000,
        Some(move || {
            seen.fetch_max(temporary_bytes(&folder), Ordering::Relaxed);
            false
        }),
    )
    .unwrap();
    new_file::finish_schema(&db, &shape::entries(source).unwrap()).unwrap();
    drop(db);
    let most = most.load(Ordering::Relaxed);
    drop(new);
    locked.release();
    (most, forecast.sort_bytes.get())
}

#[test]
fn what_is_sorted_lies_beside_the_database_and_is_no_more_than_was_forecast() {
    // Larger than what SQLite sorts in memory.
    const LARGE: &str = "
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
        INSERT INTO event SELECT 'evt_x' || i, printf('%.500d', i), i, 'a', '{}' FROM n ORDER BY i % 7;";
    let sample = Sample::with("opencode.db", |db| db.execute_batch(LARGE).unwrap());
    // A name that is not UTF-8 cannot be written in SQL.
    let unnamed = sample.folder.path().canonicalize().unwrap().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&unnamed).unwrap();
    let other = unnamed.join("opencode.db");
    fs::copy(&sample.path, &other).unwrap();
    for path in [&sample.path, &other] {
        let (most, forecast) = sorted_bytes(path);
        assert!(
            most <= forecast && most > forecast / 2,
            "{path:?}: {most} bytes sorted, {forecast} forecast"
        );
    }
}
