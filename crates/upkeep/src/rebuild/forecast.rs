//! What a rebuild would gain and what disk it needs, before anything is written.

use std::fs;

use headwater_model::ByteCount;
use rusqlite::Connection;
use serde::Serialize;

use crate::DatabaseFile;
use crate::plan::{Plan, Precision};
use crate::rebuild::error::{Doing, RebuildErrorKind};
use crate::rebuild::place;

/// A rebuild is worthwhile from this gain on, however large the file.
const GAIN_BYTES_ENOUGH: u64 = 64 << 20;

/// ... or from this share of the file on.
const GAIN_PERCENT_ENOUGH: u64 = 1;

/// Free disk that is left alone.
const ROOM_BYTES_SPARE: u64 = 16 << 20;

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
    /// Free disk needed where the files exchange their names: the new file, and the merged log.
    pub room_by_lease: ByteCount,
    /// Free disk needed where the content is copied back: the new file and a log of the same size.
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
            room_by_lease: ByteCount::new(after.saturating_add(log)),
            room_in_place: ByteCount::new(after.saturating_mul(2).saturating_add(log)),
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
