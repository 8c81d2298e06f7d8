//! The undo archive: what prunes removed, appended frame by frame and synced before the removal is committed (P17).
//!
//! A file of concatenated Zstandard frames (RFC 8878), so that `zstd -t` and `zstdcat` read it. Each frame is one unit that is
//! restored whole or not at all: a line of JSON that says what it belongs to, the rows as [`row`](super::row) writes them, and a line
//! with the SHA-256 of everything before it. Every frame carries the hash of the frame before it, so a missing or exchanged frame
//! shows. A write that was killed leaves whole frames and at most one torn one at the end, whose removal was never committed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use headwater_prune::Class;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hashed::Hashed;
use super::reader::{ArchiveReader, FrameEnd};
use super::row::{self, Change};
use crate::OpenErrorKind;
use crate::fence::SessionPlace;
use crate::rebuild::place::sync_folder;
use crate::state::DatabaseIdentity;
use crate::state::hex;

/// Why an archive cannot be written or read. The database is unchanged by the operation that reports it.
#[derive(Debug, thiserror::Error)]
#[error("archive {}: {kind}", .path.display())]
pub struct ArchiveError {
    /// The archive.
    pub path: PathBuf,
    /// What is in the way.
    #[source]
    pub kind: ArchiveErrorKind,
}

/// What is in the way of using an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveErrorKind {
    /// The file does not begin like an archive.
    #[error("not an undo archive of headwater")]
    NotAnArchive,
    /// A newer version wrote it.
    #[error("written by a newer version (format {found})")]
    Newer {
        /// The version in the file.
        found: u32,
    },
    /// It was made from another database.
    #[error("made from another database")]
    OtherDatabase,
    /// A frame does not have the content that it had when it was written.
    #[error("damaged at byte {offset}; the {whole_frames} frames before are whole")]
    Garbled {
        /// Where the bad frame begins.
        offset: u64,
        /// Frames before it.
        whole_frames: u64,
    },
    /// The last frame is unfinished: its write was interrupted, and what it speaks of was not removed by that run.
    #[error("the last frame, at byte {offset}, is unfinished; the {whole_frames} frames before are whole")]
    Torn {
        /// Where the unfinished frame begins.
        offset: u64,
        /// Frames before it.
        whole_frames: u64,
    },
    /// A row that was to be archived is gone or cannot be read.
    #[error("a row changed while it was archived")]
    RowChanged,
    /// The disk is full.
    #[error("no room on the file system")]
    NoRoom,
    /// Any other error of the file system.
    #[error("it cannot be used: {0}")]
    Io(#[source] io::Error),
    /// A row that was to be archived cannot be read, because the database is damaged.
    #[error("a row that belongs into it cannot be read: the database is damaged")]
    Damaged,
    /// SQLite cannot read a row that was to be archived.
    #[error("a row that belongs into it cannot be read: {0}")]
    Sqlite(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for ArchiveErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        if OpenErrorKind::is_damage(&error) { Self::Damaged } else { Self::Sqlite(error) }
    }
}

impl From<io::Error> for ArchiveErrorKind {
    fn from(error: io::Error) -> Self {
        let kind = error.kind();
        if matches!(
            kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        ) {
            Self::NoRoom
        } else {
            Self::Io(error)
        }
    }
}

/// The first frame.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) archive: String,
    pub(super) version: u32,
    pub(super) origin: String,
}

/// `archive` of the first frame.
pub(super) const NAME: &str = "headwater-undo";
/// `version` of the first frame.
pub(super) const VERSION: u32 = 1;
/// Fast, and within a few per cent of the higher levels on JSON rows.
const LEVEL: i32 = 3;

/// What a frame belongs to. Content-free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unit {
    /// The class that removed it.
    pub(crate) class: Class,
    /// Session and place, for the fence of an undo.
    pub(crate) place: SessionPlace,
    /// The message whose rows were removed, and the digest of what remained of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<MessageGuard>,
    /// Key of the receipt that the removal has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<String>,
}

/// What must be stored of a message for it to count as unchanged since a prune.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageGuard {
    /// The message.
    pub(crate) id: String,
    /// SHA-256 in hex over ids and bytes of what remained.
    pub(crate) after: String,
}

/// The first line of every frame but the first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FrameHead {
    pub(super) frame: u64,
    pub(super) previous: String,
    pub(super) unit: Unit,
}

/// The last line of every frame.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FrameTail {
    pub(super) end: u64,
    pub(super) sha256: String,
}

/// An archive open for appending.
#[derive(Debug)]
pub struct Archive {
    file: File,
    path: PathBuf,
    bytes: u64,
    frames: u64,
    previous: [u8; 32],
}

impl Archive {
    /// Opens the archive at `path` for prunes of the database `identity`, or creates it (mode 0600: it holds conversation text).
    ///
    /// An existing archive is verified whole. An unfinished frame at its end is cut off: it was written before a removal that was
    /// never committed.
    ///
    /// # Errors
    /// [`ArchiveError`] where the file is something else, damaged, of another database, or cannot be written.
    pub fn open(path: &Path, identity: &DatabaseIdentity) -> Result<Self, ArchiveError> {
        Self::open_kind(path, identity).map_err(|kind| ArchiveError { path: path.to_owned(), kind })
    }

    fn open_kind(path: &Path, identity: &DatabaseIdentity) -> Result<Self, ArchiveErrorKind> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut archive = Self { file, path: path.to_owned(), bytes: 0, frames: 0, previous: [0; 32] };
        match ArchiveReader::scan(path, identity)? {
            FrameEnd::Empty => {
                archive.file.set_len(0)?;
                let head =
                    Head { archive: NAME.to_owned(), version: VERSION, origin: identity.origin().to_owned() };
                archive.write_frame(|out| Ok(serde_json::to_writer(out, &head)?))?;
                sync_folder(path)?;
            }
            FrameEnd::Whole { bytes, frames, previous } | FrameEnd::Torn { bytes, frames, previous } => {
                archive.file.set_len(bytes)?;
                archive.file.sync_all()?;
                (archive.bytes, archive.frames, archive.previous) = (bytes, frames, previous);
            }
            FrameEnd::Garbled { bytes, frames } => {
                return Err(ArchiveErrorKind::Garbled { offset: bytes, whole_frames: frames });
            }
        }
        Ok(archive)
    }

    /// Where the archive is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one unit: `body` adds its rows. On disk when the call returns; after an error the archive is as it was before.
    pub(crate) fn append(
        &mut self,
        unit: &Unit,
        body: impl FnOnce(&mut FrameWriter<'_>) -> Result<(), ArchiveErrorKind>,
    ) -> Result<(), ArchiveError> {
        let head = FrameHead { frame: self.frames, previous: hex(&self.previous), unit: unit.clone() };
        self.write_frame(|out| {
            serde_json::to_writer(&mut *out, &head)?;
            out.write_all(b"\n")?;
            body(&mut FrameWriter { out })
        })
        .map_err(|kind| ArchiveError { path: self.path.clone(), kind })
    }

    fn write_frame(
        &mut self,
        body: impl FnOnce(&mut dyn Write) -> Result<(), ArchiveErrorKind>,
    ) -> Result<(), ArchiveErrorKind> {
        let outcome = self.write_frame_at_end(body);
        if outcome.is_err() {
            // What was written of the frame is cut off. If that fails too, the next run cuts it off.
            let _kept_for_the_next_run = self.file.set_len(self.bytes);
        }
        outcome
    }

    fn write_frame_at_end(
        &mut self,
        body: impl FnOnce(&mut dyn Write) -> Result<(), ArchiveErrorKind>,
    ) -> Result<(), ArchiveErrorKind> {
        self.file.seek(SeekFrom::Start(self.bytes))?;
        let mut encoder = zstd::Encoder::new(BufWriter::new(&self.file), LEVEL)?;
        encoder.include_checksum(true)?;
        let mut hashed = Hashed::new(encoder);
        body(&mut hashed)?;
        hashed.write_all(b"\n")?;
        let (mut encoder, sum) = hashed.finish();
        serde_json::to_writer(&mut encoder, &FrameTail { end: self.frames, sha256: hex(&sum) })?;
        encoder.write_all(b"\n")?;
        encoder.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.file.sync_all()?;
        let bytes = (&self.file).stream_position()?;
        self.bytes = bytes;
        self.frames += 1;
        self.previous = sum;
        Ok(())
    }
}

impl From<serde_json::Error> for ArchiveErrorKind {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// Takes the rows of one unit.
pub(crate) struct FrameWriter<'o> {
    out: &'o mut dyn Write,
}

impl FrameWriter<'_> {
    /// Adds a row that is about to be deleted. Returns its digest: under the lock the stored row must still have it.
    pub(crate) fn deleted(
        &mut self,
        connection: &Connection,
        table: &'static str,
        rowid: i64,
    ) -> Result<[u8; 32], ArchiveErrorKind> {
        let change = Change::Deleted { table: table.to_owned(), rowid };
        let written = row::write(connection, table, rowid, &change, self.out)?;
        Ok(written.ok_or(ArchiveErrorKind::RowChanged)??)
    }

    /// Adds a row whose `data` is about to be replaced by `after`.
    pub(crate) fn rewritten(
        &mut self,
        connection: &Connection,
        table: &'static str,
        rowid: i64,
        after: &[u8],
    ) -> Result<(), ArchiveErrorKind> {
        let after = hex(&Sha256::digest(after));
        let change = Change::Rewritten { table: table.to_owned(), rowid, after };
        let written = row::write(connection, table, rowid, &change, self.out)?;
        written.ok_or(ArchiveErrorKind::RowChanged)??;
        Ok(())
    }
}
