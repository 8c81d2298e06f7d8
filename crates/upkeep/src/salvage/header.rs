//! The first 100 bytes of a database (sqlite.org/fileformat2.html, section 1.3), judged and made anew.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 100;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Pages that are looked at to guess the size of a page.
const SAMPLE_PAGES: u64 = 512;

/// The first bytes of a database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header([u8; HEADER_BYTES]);

impl Header {
    /// Reads the header; zeros stand for what a shorter file lacks.
    pub(super) fn read(file: &File) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        let mut filled = 0;
        while filled < HEADER_BYTES {
            match file.read_at(&mut header[filled..], filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(Self(header))
    }

    pub(super) fn bytes(&self) -> &[u8; HEADER_BYTES] {
        &self.0
    }

    /// Whether SQLite accepts it.
    pub(super) fn is_sound(&self) -> bool {
        let header = &self.0;
        header.starts_with(MAGIC)
            && self.page_bytes().is_some()
            && (1..=2).contains(&header[18])
            && (1..=2).contains(&header[19])
            && header[21..24] == [64, 32, 32]
            && u32::from(header[20]) + 480 <= self.page_bytes().unwrap_or(0)
            && (0..=4).contains(&self.number(44))
            && (0..=3).contains(&self.number(56))
    }

    /// Whether it says write-ahead log.
    pub(super) fn is_wal(&self) -> bool {
        self.0[19] == 2
    }

    fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Bytes of a page, where the field holds a possible value.
    pub(super) fn page_bytes(&self) -> Option<u32> {
        match u16::from_be_bytes([self.0[16], self.0[17]]) {
            1 => Some(65_536),
            bytes @ 512..=32_768 if bytes.is_power_of_two() => Some(bytes.into()),
            _ => None,
        }
    }

    /// Bytes of a page that hold content.
    pub(super) fn usable_bytes(&self) -> Option<u32> {
        Some(self.page_bytes()? - u32::from(self.0[20]))
    }

    /// First trunk page of the list of free pages, 0 for none.
    pub(super) fn first_free_trunk(&self) -> u32 {
        self.number(32)
    }

    /// A header that SQLite accepts, for the file of `file_bytes` bytes: fields that are possible stay, the others are found from the
    /// pages or take the value that OpenCode's files have. `None` where no page looks like one of a database.
    pub(super) fn rebuilt(&self, file: &File, file_bytes: u64, has_log: bool) -> io::Result<Option<Self>> {
        let Some(page_bytes) = self.find_page_bytes(file, file_bytes)? else { return Ok(None) };
        let mut header = self.0;
        header[..16].copy_from_slice(MAGIC);
        let field = u16::try_from(page_bytes).unwrap_or(1);
        header[16..18].copy_from_slice(&field.to_be_bytes());
        let is_mode = |version: u8| (1..=2).contains(&version);
        if !(is_mode(header[18]) && is_mode(header[19])) {
            let mode = if has_log { 2 } else { 1 };
            (header[18], header[19]) = (mode, mode);
        }
        if u32::from(header[20]) + 480 > page_bytes || !self.0.starts_with(MAGIC) {
            header[20] = 0;
        }
        header[21..24].copy_from_slice(&[64, 32, 32]);
        if !(1..=4).contains(&self.number(44)) {
            header[44..48].copy_from_slice(&4_u32.to_be_bytes());
        }
        if !(1..=3).contains(&self.number(56)) {
            header[56..60].copy_from_slice(&1_u32.to_be_bytes());
        }
        // The size in pages is taken from the file where these two differ.
        header[24..28].copy_from_slice(&1_u32.to_be_bytes());
        header[92..96].copy_from_slice(&0_u32.to_be_bytes());
        Ok(Some(Self(header)))
    }

    fn find_page_bytes(&self, file: &File, file_bytes: u64) -> io::Result<Option<u32>> {
        let mut best = None;
        // A wrong size that is larger sees true pages too, one of several: so the smallest of the best wins.
        for exponent in (9..=16).rev() {
            let page_bytes = 1 << exponent;
            let score = score(file, file_bytes, page_bytes)?;
            if score > 0.0 && best.is_none_or(|(_, so_far)| score >= so_far * 0.8) {
                best = Some((page_bytes, score));
            }
        }
        // The field itself counts while the rest of the header looks untouched.
        let own = self.page_bytes().filter(|_| self.0.starts_with(MAGIC) && best.is_some());
        Ok(own.or(best.map(|(found, _)| found)))
    }
}

/// Part of the sampled pages that begin like a page of a tree.
fn score(file: &File, file_bytes: u64, page_bytes: u32) -> io::Result<f64> {
    let pages = (file_bytes / u64::from(page_bytes)).saturating_sub(1);
    let step = (pages / SAMPLE_PAGES).max(1);
    let (mut seen, mut like_tree) = (0_u32, 0_u32);
    let mut page = 1;
    while page <= pages {
        let mut start = [0; 8];
        file.read_exact_at(&mut start, page * u64::from(page_bytes))?;
        seen += 1;
        like_tree += u32::from(is_tree_page(start, page_bytes));
        page += step;
    }
    Ok(if seen == 0 { 0.0 } else { f64::from(like_tree) / f64::from(seen) })
}

fn is_tree_page(start: [u8; 8], page_bytes: u32) -> bool {
    let pair = |at: usize| u32::from(u16::from_be_bytes([start[at], start[at + 1]]));
    let (cells, content) = (pair(3), if pair(5) == 0 { 65_536 } else { pair(5) });
    matches!(start[0], 2 | 5 | 10 | 13)
        && pair(1) < page_bytes
        && content <= page_bytes
        && 8 + 2 * cells <= content
        && cells > 0
}
