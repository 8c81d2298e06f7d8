//! The record of a row, whose end may stand on a chain of overflow pages.

use std::io::{self, Read};

use super::Pages;
use super::record::{self, Cell};

/// The record of one row.
pub(crate) struct Payload<'p, 'a> {
    pages: &'p mut Pages<'a>,
    /// What is left of the part in the leaf.
    local: &'p [u8],
    /// The overflow page that is read next, or is being read.
    next: u32,
    /// Bytes of that page that were read.
    taken: usize,
    /// Bytes of the record that are left, the local ones included.
    left: u64,
    is_broken: &'p mut bool,
}

/// A column as it is stored.
pub(crate) enum Stored<'p, 'a> {
    /// Text or a blob that stands in the leaf as a whole.
    Here(&'p [u8]),
    /// Text or a blob of that many bytes, to be read.
    Elsewhere(u64, io::Take<Payload<'p, 'a>>),
    /// Anything else: NULL, a number, a column that the record is too short to have, a header that cannot be read.
    Other,
}

impl<'p, 'a> Payload<'p, 'a> {
    pub(super) fn new(
        pages: &'p mut Pages<'a>,
        leaf: &'p [u8],
        cell: Cell,
        is_broken: &'p mut bool,
    ) -> Option<Self> {
        let end = cell.start.checked_add(cell.local_bytes)?;
        let local = leaf.get(cell.start..end)?;
        let next = if cell.payload_bytes > local.len() as u64 {
            u32::from_be_bytes(*leaf.get(end..)?.first_chunk()?)
        } else {
            0
        };
        Some(Self { pages, local, next, taken: 0, left: cell.payload_bytes, is_broken })
    }

    /// The column at `position` among the stored ones.
    pub(super) fn column(mut self, position: usize) -> Stored<'p, 'a> {
        let Some(place) = record::column(self.local, position) else { return Stored::Other };
        let Some(end) = place.start.checked_add(place.bytes) else { return Stored::Other };
        if end > self.left {
            *self.is_broken = true;
            return Stored::Other;
        }
        let whole = usize::try_from(place.start).ok().zip(usize::try_from(end).ok());
        if let Some(found) = whole.and_then(|(start, end)| self.local.get(start..end)) {
            return Stored::Here(found);
        }
        if io::copy(&mut (&mut self).take(place.start), &mut io::sink()).is_err() {
            return Stored::Other;
        }
        Stored::Elsewhere(place.bytes, self.take(place.bytes))
    }

    /// What can be copied at once: the rest of the local part, or of one overflow page.
    fn read_part(&mut self, buffer: &mut [u8]) -> Result<usize, super::Unreadable> {
        if !self.local.is_empty() {
            let (part, rest) = self.local.split_at(self.local.len().min(buffer.len()));
            buffer[..part.len()].copy_from_slice(part);
            self.local = rest;
            return Ok(part.len());
        }
        let usable_bytes = self.pages.usable_bytes;
        let page = self.pages.page(self.next)?;
        let content = &page[4 + self.taken..usable_bytes];
        let wanted = content.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let bytes = wanted.min(buffer.len());
        buffer[..bytes].copy_from_slice(&content[..bytes]);
        if bytes == content.len() {
            self.next = u32::from_be_bytes([page[0], page[1], page[2], page[3]]);
            self.taken = 0;
        } else {
            self.taken += bytes;
        }
        Ok(bytes)
    }
}

impl Read for Payload<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() && self.left > 0 {
            let Ok(bytes) = self.read_part(&mut buffer[filled..]) else {
                *self.is_broken = true;
                return Err(io::ErrorKind::InvalidData.into());
            };
            filled += bytes;
            self.left -= bytes as u64;
        }
        Ok(filled)
    }
}
