//! The file, its pages, its log, and the pages of indexes.

use std::fs;

use headwater_model::ByteCount;
use rusqlite::{Connection, OptionalExtension};

use super::report::{DatabaseFigures, IndexFigures, LogFigures, LogState};
use crate::holders::{self, Holders};
use crate::open::ReadDatabase;

/// Bytes of the header of a write-ahead log, and of the header of each of its frames (SQLite file format, section 4).
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// The file as a whole.
pub(super) fn database(database: &ReadDatabase) -> rusqlite::Result<DatabaseFigures> {
    let db = database.connection();
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let unsigned = |name: &str| number(name).map(|value| u64::try_from(value).unwrap_or(0));
    let page_size = unsigned("page_size")?;
    let free_pages = unsigned("freelist_count")?;
    let path = database.file().path();
    let holders = holders::of(path).ok();
    Ok(DatabaseFigures {
        path: path.to_owned(),
        bytes: ByteCount::new(fs::metadata(path).map_or(0, |found| found.len())),
        page_size,
        page_count: unsigned("page_count")?,
        free_pages,
        free_bytes: ByteCount::new(free_pages.saturating_mul(page_size)),
        journal_mode: if database.file().is_wal() { "wal".to_owned() } else { "delete".to_owned() },
        log: log(database, page_size, holders.as_ref()),
        holders,
    })
}

fn log(database: &ReadDatabase, page_size: u64, holders: Option<&Holders>) -> LogFigures {
    let Ok(found) = fs::metadata(database.file().beside("-wal")) else { return LogFigures::default() };
    let bytes = found.len();
    LogFigures {
        state: if bytes == 0 { LogState::Empty } else { LogState::Filled },
        bytes: ByteCount::new(bytes),
        frames_max: bytes.saturating_sub(LOG_HEADER_BYTES) / (page_size + FRAME_HEADER_BYTES),
        is_pinned: holders.is_some_and(|found| found.holders.iter().any(holders::Holder::pins_log)),
    }
}

/// Bytes of the pages of every index. Reads the pages of indexes and no page of a table.
pub(super) fn indexes(db: &Connection) -> rusqlite::Result<Vec<IndexFigures>> {
    let mut statement =
        db.prepare("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND rootpage > 0")?;
    let names = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut figures = Vec::new();
    for found in names {
        let (name, table): (String, String) = found?;
        let page_bytes = page_bytes(db, &name)?;
        figures.push(IndexFigures { name, table, page_bytes });
    }
    figures.sort_by(|one, other| (other.page_bytes, &one.name).cmp(&(one.page_bytes, &other.name)));
    Ok(figures)
}

/// Bytes of the pages of one table or index, overflow pages included; `None` where they cannot be read.
pub(crate) fn page_bytes(db: &Connection, name: &str) -> rusqlite::Result<Option<ByteCount>> {
    let mut statement =
        db.prepare_cached("SELECT pgsize FROM dbstat WHERE name = ?1 AND aggregate = TRUE")?;
    let bytes: Option<i64> = match statement.query_row([name], |row| row.get(0)).optional() {
        Ok(bytes) => bytes,
        // A damaged page is what `check` reports; the other figures stand.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => None,
        Err(error) => return Err(error),
    };
    Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).map(ByteCount::new))
}
