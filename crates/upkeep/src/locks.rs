//! Which locks of SQLite are held on a file and by whom, from `/proc/locks`; nothing is opened, so no lock of this process is lost.

use std::fs;

use serde::Serialize;

use crate::open::FileId;

/// SQLite's lock bytes in a database file (sqlite.org/fileformat2.html, section 1.2; os.h).
const PENDING_BYTE: u64 = 0x4000_0000;
const RESERVED_BYTE: u64 = PENDING_BYTE + 1;
const SHARED_FIRST: u64 = PENDING_BYTE + 2;
const SHARED_LAST: u64 = SHARED_FIRST + 509;

/// SQLite's lock bytes in the index of a log (sqlite.org/walformat.html, section 2.3).
const INDEX_WRITE: u64 = 120;
const INDEX_CHECKPOINT: u64 = 121;
const INDEX_RECOVER: u64 = 122;
const INDEX_READ_FIRST: u64 = 123;
const INDEX_READ_LAST: u64 = 127;

/// What a process does to the database by the lock it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldLock {
    /// Keeps everybody else out.
    Exclusive,
    /// Writes, in rollback-journal mode.
    Writing,
    /// Is attached, or reads in rollback-journal mode.
    Attached,
    /// Appends to the log.
    LogWriter,
    /// Moves the log into the database.
    Checkpoint,
    /// Rebuilds the log's index.
    Recovery,
    /// Reads an older state, so that the log cannot be reset: this pins the log.
    ReadsLog,
}

/// One lock as the kernel lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelLock {
    pub(crate) pid: u32,
    is_write: bool,
    inode: u64,
    device: (u32, u32),
    first: u64,
    last: u64,
}

impl KernelLock {
    /// Every lock that the system shows; empty where it shows none.
    pub(crate) fn all() -> Vec<Self> {
        fs::read_to_string("/proc/locks").map_or_else(|_| Vec::new(), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::parse_line).collect()
    }

    /// `1: POSIX  ADVISORY  WRITE 4711 08:01:131 1073741826 1073742335`; waiters carry an arrow and are not locks.
    fn parse_line(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        if !matches!(words.next()?, "POSIX" | "OFDLCK") {
            return None;
        }
        let (_, access) = (words.next()?, words.next()?);
        let pid = words.next()?.parse().unwrap_or(0);
        let mut place = words.next()?.split(':');
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let device = (hex(place.next()?)?, hex(place.next()?)?);
        let inode = place.next()?.parse().ok()?;
        let first = words.next()?.parse().ok()?;
        let last = match words.next()? {
            "EOF" => u64::MAX,
            number => number.parse().ok()?,
        };
        Some(Self { pid, is_write: access == "WRITE", inode, device, first, last })
    }

    pub(crate) fn is_on(&self, file: FileId) -> bool {
        let device = (rustix::fs::major(file.device), rustix::fs::minor(file.device));
        self.inode == file.inode && self.device == device
    }

    fn covers(&self, byte: u64) -> bool {
        self.first <= byte && byte <= self.last
    }

    /// What the lock means on the database file.
    pub(crate) fn on_database(&self) -> Option<HeldLock> {
        let shared = self.first <= SHARED_LAST && self.last >= SHARED_FIRST;
        match (self.is_write, shared) {
            (true, true) => Some(HeldLock::Exclusive),
            (true, false) if self.covers(RESERVED_BYTE) || self.covers(PENDING_BYTE) => {
                Some(HeldLock::Writing)
            }
            (false, true) => Some(HeldLock::Attached),
            _ => None,
        }
    }

    /// What the lock means on the log's index. A lock on several bytes means the first of them.
    pub(crate) fn on_index(&self) -> Option<HeldLock> {
        if self.covers(INDEX_RECOVER) && self.is_write {
            Some(HeldLock::Recovery)
        } else if self.covers(INDEX_CHECKPOINT) && self.is_write {
            Some(HeldLock::Checkpoint)
        } else if self.covers(INDEX_WRITE) && self.is_write {
            Some(HeldLock::LogWriter)
        } else if self.first <= INDEX_READ_LAST && self.last >= INDEX_READ_FIRST && !self.is_write {
            Some(HeldLock::ReadsLog)
        } else {
            None
        }
    }
}

/// Whether another process keeps everybody out of the database, as far as the system shows.
pub(crate) fn is_held_exclusively(file: FileId) -> bool {
    let own = std::process::id();
    KernelLock::all()
        .iter()
        .any(|lock| lock.is_on(file) && lock.pid != own && lock.on_database() == Some(HeldLock::Exclusive))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  READ  4711 08:01:131 128 128
2: POSIX  ADVISORY  READ  4711 08:01:131 124 124
3: POSIX  ADVISORY  WRITE 4712 08:01:130 1073741826 1073742335
3: -> POSIX  ADVISORY  READ  4713 08:01:130 1073741826 1073742335
4: FLOCK  ADVISORY  WRITE 99 08:01:9 0 EOF
5: OFDLCK ADVISORY  WRITE -1 fe:10:77 0 EOF
";

    #[test]
    fn the_kernel_list_is_read_without_waiters_and_other_kinds() {
        let locks = KernelLock::parse(LOCKS);
        let meanings: Vec<_> =
            locks.iter().map(|lock| (lock.pid, lock.on_database(), lock.on_index())).collect();
        assert_eq!(
            meanings,
            [
                (4711, None, None),
                (4711, None, Some(HeldLock::ReadsLog)),
                (4712, Some(HeldLock::Exclusive), None),
                (0, Some(HeldLock::Exclusive), Some(HeldLock::Recovery)),
            ]
        );
        assert_eq!(locks[3].device, (0xfe, 0x10));
    }
}
