//! How a database is read without leaving a trace, decided from what lies beside it.

use std::fs;
use std::io::{self, Read};

use super::fingerprint::FileState;
use super::{DatabaseFile, OpenErrorKind};

/// The way a database is read. No way creates, changes or removes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A rollback-journal database: SQLite's shared lock while a statement runs.
    Locked,
    /// A log and its index are there, whether a server runs or was killed: SQLite maps the index read-only (`readonly_shm`), takes
    /// the ordinary read locks where a writer is attached, and else keeps an index of its own in memory.
    SharedLog,
    /// A log without an index, as in a copied pair: nobody is attached, and SQLite keeps an index of its own in memory (VFS without
    /// locks, exclusive locking mode). Safe only while nobody writes, so [`super::ReadDatabase::finish`] compares.
    PrivateLog,
    /// A write-ahead-log database without a log: nobody is attached (an attached process always has a log), and a plain
    /// read-only open would create one. Safe only while nobody writes, so [`super::ReadDatabase::finish`] compares.
    Unattended,
}

impl Access {
    /// The parameters of the URI that SQLite opens.
    pub(super) fn parameters(self) -> &'static str {
        match self {
            Self::Locked => "mode=ro",
            Self::SharedLog => "mode=ro&readonly_shm=1",
            Self::PrivateLog => "mode=ro&vfs=unix-none",
            Self::Unattended => "mode=ro&immutable=1",
        }
    }

    /// Whether no lock keeps a writer away, so that the end of the reading must look for one.
    pub fn is_unlocked(self) -> bool {
        matches!(self, Self::PrivateLog | Self::Unattended)
    }

    fn decide(is_wal: bool, surroundings: &Surroundings, has_log_header: bool) -> Self {
        let log_bytes = surroundings.log.map_or(0, |log| log.bytes);
        match (surroundings.log.is_some(), surroundings.index.is_some()) {
            // SQLite waits for a writer that makes a header of it, and there may be none. In memory it takes such a log as empty.
            (true, _) if log_bytes > 0 && !has_log_header => Self::PrivateLog,
            (true, true) if is_wal || log_bytes > 0 => Self::SharedLog,
            (true, false) if log_bytes > 0 => Self::PrivateLog,
            _ if is_wal => Self::Unattended,
            _ => Self::Locked,
        }
    }
}

/// Whether the log begins as one: its magic number, whose last bit is the byte order of its checksums, and its version (SQLite, "WAL
/// file format"). A log that cannot be read is left to SQLite, which says why.
fn has_log_header(file: &DatabaseFile) -> bool {
    let mut header = [0_u8; 8];
    let read = fs::File::open(file.beside("-wal")).and_then(|mut log| log.read_exact(&mut header));
    let [magic, version] = [&header[..4], &header[4..]];
    match read {
        Ok(()) => {
            magic[..3] == [0x37, 0x7f, 0x06]
                && magic[3] & 0xfe == 0x82
                && version == 3_007_000_u32.to_be_bytes()
        }
        Err(error) => error.kind() != io::ErrorKind::UnexpectedEof,
    }
}

/// A database and what lies beside it at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Surroundings {
    main: Option<FileState>,
    log: Option<FileState>,
    index: Option<FileState>,
}

impl Surroundings {
    /// Looks at the files by name; opens none.
    pub(super) fn of(file: &DatabaseFile) -> io::Result<Self> {
        Ok(Self {
            main: FileState::of(file.path())?,
            log: FileState::of(&file.beside("-wal"))?,
            index: FileState::of(&file.beside("-shm"))?,
        })
    }

    /// Whether a log or its index is there.
    pub(super) fn has_side_files(&self) -> bool {
        self.log.is_some() || self.index.is_some()
    }

    /// How the database is read in these surroundings.
    pub(super) fn access(&self, file: &DatabaseFile) -> Access {
        Access::decide(file.is_wal(), self, has_log_header(file))
    }

    /// Whether the file looked at is the one that `file` was made from.
    pub(super) fn ensure_same(&self, file: &DatabaseFile) -> Result<(), OpenErrorKind> {
        match self.main {
            Some(main) if main.id == file.id() => Ok(()),
            _ => Err(OpenErrorKind::Replaced),
        }
    }

    /// Whether an unlocked reading that began in these surroundings and ends in `later` saw one state of the database.
    pub(super) fn ensure_unwritten(&self, later: &Self) -> Result<(), OpenErrorKind> {
        let log_bytes = |found: &Self| found.log.map_or(0, |log| log.bytes);
        let log_is_same = self.log == later.log || (log_bytes(self) == 0 && log_bytes(later) == 0);
        if self.main == later.main && log_is_same { Ok(()) } else { Err(OpenErrorKind::ChangedWhileReading) }
    }
}
