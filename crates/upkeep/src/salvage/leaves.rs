//! Rows of leaf pages that no tree leads to any more, because a page above them is destroyed.
//!
//! Such a page does not say which table it belongs to. A row counts only where an index of the table names it: a unique value of
//! the row must stand in the index with the row's own number.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use roaring::RoaringBitmap;
use rusqlite::types::ValueRef;

use super::header::Header;
use super::source::Source;
use crate::pages::{Cell, cells, values};
use crate::plan::RowIds;

/// Largest record that is put together, in bytes: SQLite's own limit.
const RECORD_BYTES_MAX: u64 = 1_000_000_000;

/// What the list of free pages says, read once: rows on free pages were deleted.
#[derive(Debug, Default)]
pub(super) struct Stray {
    free: Option<RoaringBitmap>,
}

impl Stray {
    /// Hands every row with a rowid in `wanted`, found on any leaf that is not free, to `each`: rowid, and values in the order of
    /// storage. A record that is not whole is passed over.
    ///
    /// # Errors
    /// What `each` returns. Pages that cannot be read are passed over.
    pub(super) fn visit<E>(
        &mut self,
        source: &Source,
        wanted: &RowIds,
        mut each: impl FnMut(i64, &[ValueRef<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(pages) = Pages::of(source) else { return Ok(()) };
        let free = self.free.get_or_insert_with(|| pages.free());
        let mut page = vec![0; pages.page_bytes];
        for number in 2..=pages.count {
            if free.contains(number) || pages.read(number, &mut page).is_err() {
                continue;
            }
            for cell in cells(&page, pages.usable_bytes) {
                if !wanted.contains(cell.rowid.cast_unsigned()) {
                    continue;
                }
                let Some(record) = pages.record(&page, cell) else { continue };
                if let Some(values) = values(&record) {
                    each(cell.rowid, &values)?;
                }
            }
        }
        Ok(())
    }
}

/// The pages of the file, by number.
struct Pages<'a> {
    file: &'a File,
    header: &'a Header,
    page_bytes: usize,
    usable_bytes: usize,
    count: u32,
}

impl<'a> Pages<'a> {
    fn of(source: &'a Source) -> Option<Self> {
        let file = source.pages()?;
        let header = source.header();
        let page_bytes = usize::try_from(header.page_bytes()?).ok()?;
        let bytes = file.metadata().ok()?.len();
        Some(Self {
            file,
            header,
            page_bytes,
            usable_bytes: usize::try_from(header.usable_bytes()?).ok()?,
            count: u32::try_from(bytes / page_bytes as u64).unwrap_or(u32::MAX),
        })
    }

    fn read(&self, number: u32, page: &mut [u8]) -> io::Result<()> {
        let before = number.checked_sub(1).ok_or(io::ErrorKind::InvalidInput)?;
        self.file.read_exact_at(page, u64::from(before) * self.page_bytes as u64)
    }

    /// The list of free pages, as far as it can be followed (section 1.5).
    fn free(&self) -> RoaringBitmap {
        let mut free = RoaringBitmap::new();
        let mut trunk = self.header.first_free_trunk();
        let mut page = vec![0; self.page_bytes];
        // A list that leads in a circle ends at the page it meets again.
        while trunk != 0 && trunk <= self.count && free.insert(trunk) && self.read(trunk, &mut page).is_ok() {
            let number = |at: usize| u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
            let leaves = usize::try_from(number(4)).unwrap_or(0).min(self.usable_bytes / 4 - 2);
            free.extend((0..leaves).map(|at| number(8 + 4 * at)));
            trunk = number(0);
        }
        free
    }

    /// The record of a cell with what stands on overflow pages; `None` where the chain is broken.
    fn record(&self, page: &[u8], cell: Cell) -> Option<Vec<u8>> {
        if cell.payload_bytes > RECORD_BYTES_MAX || cell.payload_bytes > self.file.metadata().ok()?.len() {
            return None;
        }
        let bytes = usize::try_from(cell.payload_bytes).ok()?;
        let mut record = Vec::with_capacity(bytes);
        let end = cell.start + cell.local_bytes;
        record.extend_from_slice(page.get(cell.start..end)?);
        let mut next = page
            .get(end..end + 4)
            .map_or(0, |number| u32::from_be_bytes([number[0], number[1], number[2], number[3]]));
        let mut overflow = vec![0; self.page_bytes];
        while record.len() < bytes {
            if next < 2 || next > self.count {
                return None;
            }
            self.read(next, &mut overflow).ok()?;
            let part = (bytes - record.len()).min(self.usable_bytes - 4);
            record.extend_from_slice(&overflow[4..4 + part]);
            next = u32::from_be_bytes([overflow[0], overflow[1], overflow[2], overflow[3]]);
        }
        Some(record)
    }
}
