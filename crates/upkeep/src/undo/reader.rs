//! Reading an undo archive: every frame is verified before anything of it is used.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::archive::{ArchiveErrorKind, FrameHead, FrameTail, Head, NAME, Unit, VERSION};
use super::row::{self, Record};
use crate::state::{DatabaseIdentity, hex};

/// Largest window that is decoded, as a power of two: 8 MiB. The writer uses 2 MiB.
const WINDOW_LOG_MAX: u32 = 23;

/// How an archive ends.
#[derive(Debug)]
pub(super) enum FrameEnd {
    /// No whole frame is there, not even the first.
    Empty,
    /// After a whole frame.
    Whole { bytes: u64, frames: u64, previous: [u8; 32] },
    /// Inside a frame.
    Torn { bytes: u64, frames: u64, previous: [u8; 32] },
    /// A frame is not what was written.
    Garbled { bytes: u64, frames: u64 },
}

/// Whole, verified frames of an archive, by where they begin.
#[derive(Debug)]
pub(super) struct ArchiveReader {
    file: File,
    /// Where the frames after the first begin.
    pub(super) offsets: Vec<u64>,
    /// Whether an unfinished frame at the end is left out.
    pub(super) is_torn: bool,
}

impl ArchiveReader {
    /// Verifies the archive from beginning to end, in constant memory.
    pub(super) fn scan(path: &Path, identity: &DatabaseIdentity) -> Result<FrameEnd, ArchiveErrorKind> {
        let mut offsets = Vec::new();
        scan(&File::open(path)?, identity, &mut offsets)
    }

    /// Opens an archive for restoring.
    ///
    /// # Errors
    /// [`ArchiveErrorKind::Torn`] where its last frame is unfinished and `accept_torn` does not allow that; any damage.
    pub(super) fn open(
        path: &Path,
        identity: &DatabaseIdentity,
        accept_torn: bool,
    ) -> Result<Self, ArchiveErrorKind> {
        let file = File::open(path)?;
        let mut offsets = Vec::new();
        let mut is_torn = false;
        match scan(&file, identity, &mut offsets)? {
            FrameEnd::Whole { .. } => {}
            FrameEnd::Empty => return Err(ArchiveErrorKind::NotAnArchive),
            FrameEnd::Torn { .. } if accept_torn => is_torn = true,
            FrameEnd::Torn { bytes, frames, .. } => {
                return Err(ArchiveErrorKind::Torn { offset: bytes, whole_frames: frames });
            }
            FrameEnd::Garbled { bytes, frames } => {
                return Err(ArchiveErrorKind::Garbled { offset: bytes, whole_frames: frames });
            }
        }
        Ok(Self { file, offsets, is_torn })
    }

    /// Reads the frame that begins at `offset` again: first its unit, then each record in the order it was written.
    pub(super) fn frame(&self, offset: u64) -> Result<FrameReader<'_>, ArchiveErrorKind> {
        let mut input = &self.file;
        input.seek(SeekFrom::Start(offset))?;
        let mut decoder = zstd::Decoder::new(input)?.single_frame();
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        let mut input = BufReader::new(decoder);
        let head: FrameHead = serde_json::from_slice(&row::read_line(&mut input)?)?;
        Ok(FrameReader { unit: head.unit, input })
    }
}

/// One frame being read.
pub(super) struct FrameReader<'f> {
    pub(super) unit: Unit,
    input: BufReader<zstd::Decoder<'static, BufReader<&'f File>>>,
}

impl FrameReader<'_> {
    /// The next record, `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Record>, ArchiveErrorKind> {
        let line = row::read_line(&mut self.input)?;
        if line.is_empty() { Ok(None) } else { Ok(Some(row::read(&line, &mut self.input)?)) }
    }

    /// Passes over the next record without reading its values; `false` after the last.
    pub(super) fn skip(&mut self) -> Result<bool, ArchiveErrorKind> {
        let line = row::read_line(&mut self.input)?;
        if line.is_empty() {
            return Ok(false);
        }
        row::skip(&line, &mut self.input)?;
        Ok(true)
    }
}

fn scan(
    file: &File,
    identity: &DatabaseIdentity,
    offsets: &mut Vec<u64>,
) -> Result<FrameEnd, ArchiveErrorKind> {
    let mut input = BufReader::with_capacity(64 * 1024, file);
    let (mut bytes, mut frames, mut previous) = (0, 0, [0; 32]);
    loop {
        if input.fill_buf()?.is_empty() {
            let is_empty = frames == 0;
            return Ok(if is_empty { FrameEnd::Empty } else { FrameEnd::Whole { bytes, frames, previous } });
        }
        match verify_frame(&mut input, frames, &previous, identity) {
            Ok(sum) => previous = sum,
            Err(Bad::Torn) if frames == 0 => return Ok(FrameEnd::Empty),
            Err(Bad::Torn) => return Ok(FrameEnd::Torn { bytes, frames, previous }),
            Err(Bad::Garbled) if frames == 0 => return Err(ArchiveErrorKind::NotAnArchive),
            Err(Bad::Garbled) => return Ok(FrameEnd::Garbled { bytes, frames }),
            Err(Bad::Other(kind)) => return Err(kind),
        }
        if frames > 0 {
            offsets.push(bytes);
        }
        frames += 1;
        bytes = input.stream_position()?;
    }
}

enum Bad {
    /// The file ends inside the frame.
    Torn,
    /// The frame is not what was written.
    Garbled,
    /// Nothing to do with the frame.
    Other(ArchiveErrorKind),
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Torn
        } else if error.raw_os_error().is_some() {
            Self::Other(error.into())
        } else {
            Self::Garbled
        }
    }
}

impl From<serde_json::Error> for Bad {
    fn from(_: serde_json::Error) -> Self {
        Self::Garbled
    }
}

/// Reads one frame through and checks its place in the chain and its hash. What decodes must be exactly what was written: a frame
/// that ends early inside is damaged, not torn, because its checksum is right.
fn verify_frame(
    input: &mut BufReader<&File>,
    number: u64,
    previous: &[u8; 32],
    identity: &DatabaseIdentity,
) -> Result<[u8; 32], Bad> {
    let mut decoder = zstd::Decoder::with_buffer(input)?.single_frame();
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    let mut hashed = BufReader::new(Ended { input: decoder, ended: false });
    let mut sum = Sha256::new();
    let mut reader = Summed { input: &mut hashed, sum: &mut sum };
    let outcome = verify_lines(&mut reader, number, previous, identity);
    // An end of the decoded bytes is a torn file only if the decoder said so.
    let outcome = match outcome {
        Err(Bad::Torn) if hashed.get_ref().ended => Err(Bad::Garbled),
        other => other,
    };
    outcome?;
    let sum: [u8; 32] = sum.finalize().into();
    let tail: FrameTail = serde_json::from_slice(&row::read_line(&mut hashed)?)?;
    let mut rest = [0; 1];
    if tail.end != number || tail.sha256 != hex(&sum) || hashed.read(&mut rest)? != 0 {
        return Err(Bad::Garbled);
    }
    Ok(sum)
}

fn verify_lines(
    reader: &mut dyn BufRead,
    number: u64,
    previous: &[u8; 32],
    identity: &DatabaseIdentity,
) -> Result<(), Bad> {
    let line = row::read_line(reader)?;
    if number == 0 {
        let head: Head = serde_json::from_slice(&line)?;
        if head.archive != NAME {
            return Err(Bad::Garbled);
        }
        if head.version != VERSION {
            return Err(Bad::Other(ArchiveErrorKind::Newer { found: head.version }));
        }
        if head.origin != identity.origin() {
            return Err(Bad::Other(ArchiveErrorKind::OtherDatabase));
        }
        return Ok(());
    }
    let head: FrameHead = serde_json::from_slice(&line)?;
    if head.frame != number || head.previous != hex(previous) {
        return Err(Bad::Garbled);
    }
    loop {
        let line = row::read_line(reader)?;
        if line.is_empty() {
            return Ok(());
        }
        row::skip(&line, reader)?;
    }
}

/// Remembers whether the decoder came to the end of its frame.
struct Ended<R> {
    input: R,
    ended: bool,
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.ended |= read == 0 && !bytes.is_empty();
        Ok(read)
    }
}

/// Hashes what is consumed, and no more.
struct Summed<'r, R> {
    input: &'r mut R,
    sum: &'r mut Sha256,
}

impl<R: BufRead> Read for Summed<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.sum.update(&bytes[..read]);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Summed<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Ok(buffered) = self.input.fill_buf() {
            self.sum.update(&buffered[..amount.min(buffered.len())]);
        }
        self.input.consume(amount);
    }
}
