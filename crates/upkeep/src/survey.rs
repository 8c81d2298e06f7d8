//! Reads what decisions need from a database, one session at a time, without reading payloads.
//!
//! Small columns come by SQL with `octet_length(data)`, which reads no overflow page. What a payload begins with comes through
//! SQLite's incremental blob interface: with pages of 4 KiB at least 489 bytes of a row lie on its leaf page, while `substr(data, ..)`
//! in SQL would read the whole row.

pub(crate) mod content;
pub(crate) mod content_v1;
pub(crate) mod content_v2;
pub(crate) mod events;
pub(crate) mod facts;
pub(crate) mod glance;
pub(crate) mod payload;
pub(crate) mod roster;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod walker;

/// A byte count that SQLite computed: zero for NULL.
pub(crate) fn byte_length(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(column)?.map_or(0, |bytes| u64::try_from(bytes).unwrap_or(0)))
}
