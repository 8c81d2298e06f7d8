//! What a rebuild would gain and what disk it needs, before anything is written.

use std::fs;

use headwater_model::ByteCount;
use rusqlite::Connection;
use serde::Serialize;

use crate::DatabaseFile;
use crate::plan::{Plan, Precision};
use crate::rebuild::error::{Doing, RebuildErrorKind};
use crate::rebuild::shape::{TableShape, entries};
use crate::rebuild::{new_file, place};
use crate::stats;

/// A rebuild is worthwhile from this gain on, however large the file.
const GAIN_BYTES_ENOUGH: u64 = 64 << 20;

/// ... or from this share of the file on.
const GAIN_PERCENT_ENOUGH: u64 = 1;

/// Free disk that is left alone.
const ROOM_BYTES_SPARE: u64 = 16 << 20;

/// SQLite merges at most 16 runs at once; merging more of them takes half a run for each 16.
const MERGE_PART: u64 = 16;

/// What a rebuild would gain and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Bytes of the file and of its log.
    pub bytes_before: ByteCount,
    /// Bytes of the new file at most: what is certain to go is taken off, nothing else.
    pub bytes_after: ByteCount,
    /// Bytes of pages that hold nothing.
    pub free_page_bytes: ByteCount,
    /// Bytes of row data that the plan frees, upper bounds included.
    pub planned_bytes: ByteCount,
    /// Rows that the plan drops or rewrites.
    pub planned_rows: u64,
    /// Bytes that SQLite puts into a temporary file beside the database while it sorts the largest index, at most.
    pub sort_bytes: ByteCount,
    /// Free disk needed where the files exchange their names: the new file, and what is sorted or later the merged log.
    pub room_by_lease: ByteCount,
    /// Free disk needed where the content is copied back: the new file, and what is sorted or later a log of the same size besides the
    /// merged one.
    pub room_in_place: ByteCount,
    /// Bytes that the log grows by where the content is copied back; none otherwise.
    pub log_in_place: ByteCount,
    /// Free disk beside the database.
    pub free_disk: ByteCount,
}

impl Forecast {
    /// For `plan` on `file`, read through `db`. Opens nothing.
    ///
    /// # Errors
    /// [`RebuildErrorKind`] where SQLite or the file system does not answer.
    pub fn of(db: &Connection, file: &DatabaseFile, plan: &Plan) -> Result<Self, RebuildErrorKind> {
        let pragma = |name: &str| {
            db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, u32>(0))
                .map(u64::from)
                .doing("counting pages")
        };
        let page_bytes = pragma("page_size")?;
        let content = pragma("page_count")?.saturating_mul(page_bytes);
        let free = pragma("freelist_count")?.saturating_mul(page_bytes);
        let log = fs::metadata(file.beside("-wal")).map_or(0, |found| found.len());
        let stored = fs::metadata(file.path()).doing("looking at the database")?.len();
        let exact = plan.totals.values().filter(|total| total.precision == Precision::Exact);
        let certain: ByteCount = exact.map(|total| total.bytes).sum();
        let after = content.saturating_sub(free).saturating_sub(certain.get());
        let sort = sort_bytes(db, plan)?;
        // What is sorted is gone before the log is merged or grows.
        let room = |later: u64| ByteCount::new(after.saturating_add(sort.max(later)));
        Ok(Self {
            bytes_before: ByteCount::new(stored.saturating_add(log)),
            bytes_after: ByteCount::new(after),
            free_page_bytes: ByteCount::new(free),
            planned_bytes: plan.totals.values().map(|total| total.bytes).sum(),
            planned_rows: plan
                .totals
                .values()
                .map(|total| total.rows_dropped.saturating_add(total.rows_rewritten))
                .fold(0, u64::saturating_add),
            sort_bytes: ByteCount::new(sort),
            room_by_lease: room(log),
            room_in_place: room(after.saturating_add(log)),
            log_in_place: ByteCount::new(after),
            free_disk: ByteCount::new(place::free_bytes(file.path())?),
        })
    }

    /// Refuses a rewrite that frees next to nothing, unless `force`.
    ///
    /// # Errors
    /// [`RebuildErrorKind::NothingToGain`].
    pub fn ensure_worthwhile(&self, force: bool) -> Result<(), RebuildErrorKind> {
        let gain = self.free_page_bytes + self.planned_bytes;
        let share = gain.get().saturating_mul(100) / GAIN_PERCENT_ENOUGH;
        let is_enough = gain.get() >= GAIN_BYTES_ENOUGH || share >= self.bytes_before.get();
        if force || is_enough {
            return Ok(());
        }
        Err(RebuildErrorKind::NothingToGain {
            free_bytes: self.free_page_bytes.get(),
            planned_bytes: self.planned_bytes.get(),
            file_bytes: self.bytes_before.get(),
        })
    }

    /// Refuses where the disk is too full for the way that may be taken.
    ///
    /// # Errors
    /// [`RebuildErrorKind::NoRoom`].
    pub fn ensure_room(&self, in_place: bool) -> Result<(), RebuildErrorKind> {
        let needed = if in_place { self.room_in_place } else { self.room_by_lease };
        let needed_bytes = needed.get().saturating_add(ROOM_BYTES_SPARE);
        let free_bytes = self.free_disk.get();
        if needed_bytes <= free_bytes {
            Ok(())
        } else {
            Err(RebuildErrorKind::NoRoom { needed_bytes, free_bytes })
        }
    }
}

/// Most bytes that building one of the indexes puts into temporary files. They are built one after the other, and each sorts all of its
/// entries unless they are moved in their order.
fn sort_bytes(db: &Connection, plan: &Plan) -> Result<u64, RebuildErrorKind> {
    let mut most = 0;
    for index in entries(db)?.into_iter().filter(|entry| entry.kind == "index") {
        if is_sorted(db, plan, &index.table, &index.name)? {
            // Pages that cannot be read count for nothing; the rows are read without them.
            let pages = stats::page_bytes(db, &index.name).doing("counting pages of indexes")?;
            most = most.max(pages.map_or(0, ByteCount::get));
        }
    }
    // Entries take no more than the pages that held them; merging many runs takes a part of their bytes once more (SQLite: vdbesort.c).
    Ok(most.saturating_add(most / MERGE_PART))
}

/// Whether the entries of an index are sorted anew. Those of a table that stays whole are moved, where no expression makes them.
fn is_sorted(db: &Connection, plan: &Plan, table: &str, index: &str) -> Result<bool, RebuildErrorKind> {
    let is_moved = !plan.fates.contains_key(table) && TableShape::read(db, table)?.moves_records;
    Ok(!is_moved || !new_file::plain_indexes(db, table)?.iter().any(|plain| plain.name == index))
}
