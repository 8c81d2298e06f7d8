//! The write-ahead log, read as SQLite recovers it (sqlite.org/fileformat2.html, section 4): frames up to the last commit whose salts and
//! running checksum are right.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::Unreadable;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// Largest log that is looked at. OpenCode's is moved into the database every 1000 pages.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Where the newest version of each page in the log stands.
pub(super) struct Log {
    path: PathBuf,
    page_bytes: usize,
    /// The state of the database (`PRAGMA data_version`) in which the log was read.
    version: Option<i64>,
    file: Option<File>,
    frames: HashMap<u32, Frame>,
    database_pages: Option<u32>,
    buffer: Vec<u8>,
}

/// A frame: its offset, and its header, which tells whether it was overwritten since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    offset: u64,
    header: [u8; FRAME_HEADER_BYTES],
}

impl Log {
    pub(super) fn new(path: PathBuf, page_bytes: usize) -> Self {
        let (frames, buffer) = (HashMap::new(), Vec::new());
        Self { path, page_bytes, version: None, file: None, frames, database_pages: None, buffer }
    }

    /// Reads the log again where somebody committed since the last look.
    pub(super) fn look(&mut self, version: i64) -> Result<(), Unreadable> {
        if self.version == Some(version) {
            return Ok(());
        }
        self.version = None;
        self.frames.clear();
        self.database_pages = None;
        self.file = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => return Err(Unreadable),
        };
        if let Some(file) = &self.file {
            let bytes = file.metadata().map_err(|_| Unreadable)?.len();
            if bytes > LOG_BYTES_MAX {
                return Err(Unreadable);
            }
            let (frames, database_pages) =
                read(BufReader::with_capacity(64 << 10, file.take(bytes)), self.page_bytes)?;
            (self.frames, self.database_pages) = (frames, database_pages);
        }
        self.version = Some(version);
        Ok(())
    }

    /// Pages of the database after the last commit in the log; `None` where there is none.
    pub(super) fn database_pages(&self) -> Option<u32> {
        self.database_pages
    }

    /// The newest committed version of page `number`.
    pub(super) fn holds(&self, number: u32) -> Option<Frame> {
        self.frames.get(&number).copied()
    }

    /// The page in `frame`.
    pub(super) fn page(&mut self, frame: Frame) -> Result<&[u8], Unreadable> {
        let file = self.file.as_ref().ok_or(Unreadable)?;
        self.buffer.resize(self.page_bytes, 0);
        let content = frame.offset + FRAME_HEADER_BYTES as u64;
        file.read_exact_at(&mut self.buffer, content).map_err(|_| Unreadable)?;
        // A writer that begins the log anew writes the header of a frame before its page: the old header after the page was read
        // proves that it was the old page.
        let mut header = [0; FRAME_HEADER_BYTES];
        file.read_exact_at(&mut header, frame.offset).map_err(|_| Unreadable)?;
        if header == frame.header { Ok(&self.buffer) } else { Err(Unreadable) }
    }
}

/// The newest committed frame of each page, and the size of the database in pages. A log that does not begin as one is empty, as it is for
/// SQLite.
fn read(mut input: impl Read, page_bytes: usize) -> Result<(HashMap<u32, Frame>, Option<u32>), Unreadable> {
    let mut frames = HashMap::new();
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut input, &mut header)? {
        return Ok((frames, None));
    }
    let [magic, version, size, _, _, _, sum_1, sum_2] = words(&header, u32::from_be_bytes);
    let order = match magic {
        0x377f_0682 => u32::from_le_bytes,
        0x377f_0683 => u32::from_be_bytes,
        _ => return Ok((frames, None)),
    };
    let mut sum = Checksum { sum: [0; 2], order };
    sum.add(&header[..24]);
    if sum.sum != [sum_1, sum_2] {
        return Ok((frames, None));
    }
    // SQLite refuses another version, and reads a log of pages of another size.
    if version != 3_007_000 || usize::try_from(size) != Ok(page_bytes) {
        return Err(Unreadable);
    }
    let salts = &header[16..24];
    let mut waiting = Vec::new();
    let mut database_pages = None;
    let mut offset = HEADER_BYTES as u64;
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    while fill(&mut input, &mut frame)? {
        let Some((head, page)) = frame.split_first_chunk::<FRAME_HEADER_BYTES>() else { break };
        let [number, commit, _, _, sum_1, sum_2] = words(head, u32::from_be_bytes);
        sum.add(&head[..8]);
        sum.add(page);
        if number == 0 || &head[8..16] != salts || sum.sum != [sum_1, sum_2] {
            break;
        }
        waiting.push((number, Frame { offset, header: *head }));
        if commit != 0 {
            frames.extend(waiting.drain(..));
            database_pages = Some(commit);
        }
        offset += frame.len() as u64;
    }
    Ok((frames, database_pages))
}

/// Fills `buffer`; false where the input ends before.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<bool, Unreadable> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(_) => Err(Unreadable),
    }
}

fn words<const WORDS: usize>(bytes: &[u8], order: fn([u8; 4]) -> u32) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = order(*bytes);
    }
    words
}

/// The running checksum of a log (section 4.2).
struct Checksum {
    sum: [u32; 2],
    order: fn([u8; 4]) -> u32,
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let [mut first, mut second] = self.sum;
        for pair in bytes.as_chunks::<8>().0 {
            let [one, two] = words(pair, self.order);
            first = first.wrapping_add(one).wrapping_add(second);
            second = second.wrapping_add(two).wrapping_add(first);
        }
        self.sum = [first, second];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: u32, page_bytes: u32) -> Vec<u8> {
        let mut header: Vec<u8> =
            [0x377f_0683, version, page_bytes, 1, 2, 3].into_iter().flat_map(u32::to_be_bytes).collect();
        let mut sum = Checksum { sum: [0; 2], order: u32::from_be_bytes };
        sum.add(&header);
        header.extend(sum.sum.into_iter().flat_map(u32::to_be_bytes));
        header
    }

    #[test]
    fn a_log_of_another_version_or_page_size_is_left_to_sqlite() {
        assert_eq!(read(&*header(3_007_000, 4096), 4096), Ok((HashMap::new(), None)));
        assert_eq!(read(&*header(3_007_000, 1024), 4096), Err(Unreadable));
        assert_eq!(read(&*header(3_008_000, 4096), 4096), Err(Unreadable));
        let mut damaged = header(3_008_000, 1024);
        damaged[31] ^= 1;
        assert_eq!(read(&*damaged, 4096), Ok((HashMap::new(), None)), "no log for SQLite either");
    }
}
