//! What the operating system offers and no safe library wraps: write leases and early write-back. The only module with `unsafe`.
//!
//! A write lease on a descriptor is granted only while no other process, and no other descriptor of this one, has the file open
//! or mapped; while it is held, an `open(2)` by anybody else waits in the kernel, and the holder can see that one waits. Together
//! with SQLite's exclusive lock that is the proof that nobody is left behind on a file that is about to be exchanged.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file a name or a descriptor means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file that `path` names, symlinks followed. Opens nothing.
    ///
    /// # Errors
    /// Any error of `stat(2)`.
    pub fn of(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|found| Self::from(&found))
    }
}

impl From<&Metadata> for FileIdentity {
    fn from(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// Descriptors of this process that are open on `file`, ascending. Empty where `/proc` is not there. Opens nothing on `file` itself.
///
/// # Errors
/// Any error while `/proc/self/fd` is listed.
pub fn own_descriptors(file: FileIdentity) -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let Some(descriptor) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The link may be gone again: the listing has a descriptor of its own, and other threads come and go.
        if FileIdentity::of(&entry.path()).is_ok_and(|identity| identity == file) {
            found.push(descriptor);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Why no write lease could be had.
#[derive(Debug, thiserror::Error)]
pub enum LeaseRefused {
    /// Somebody else has the file open or mapped, whatever they did with it.
    #[error("another process has the file open")]
    OpenElsewhere,
    /// This process has the file open more than once, or not at all.
    #[error("this process has {0} descriptors of the file instead of one")]
    OwnDescriptors(usize),
    /// The operating system, the file system or the caller's rights allow no lease.
    #[error("no write lease here: {0}")]
    Unavailable(io::Error),
}

/// A write lease on a file that this process has open. Ends with [`WriteLease::release`] or when the descriptor is closed.
#[derive(Debug)]
pub struct WriteLease {
    descriptor: RawFd,
}

impl WriteLease {
    /// Takes a lease on the one descriptor that this process has of `file`.
    ///
    /// # Errors
    /// [`LeaseRefused`]; nothing has changed then.
    pub fn take(file: FileIdentity) -> Result<Self, LeaseRefused> {
        let descriptors = own_descriptors(file).map_err(LeaseRefused::Unavailable)?;
        let [descriptor] = descriptors[..] else {
            return Err(LeaseRefused::OwnDescriptors(descriptors.len()));
        };
        system::take_lease(descriptor)?;
        Ok(Self { descriptor })
    }

    /// Whether nobody waits in `open(2)` for the file. False as well once the kernel has taken the lease back.
    pub fn is_whole(&self) -> bool {
        system::is_lease_whole(self.descriptor)
    }

    /// Gives the lease back: whoever waits in `open(2)` goes on.
    pub fn release(self) {
        system::release_lease(self.descriptor);
    }
}

/// Asks the kernel to begin writing `length` bytes of `file` from `offset` to the disk, and does not wait for it. A hint: the
/// final `fsync` finds less to do, and stays necessary.
pub fn start_write_back(file: &File, offset: u64, length: u64) {
    system::start_write_back(file, offset, length);
}

/// Pages of `file` that are in memory and not yet on the disk.
///
/// # Errors
/// Where the kernel is older than 6.5.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn unwritten_pages(file: &File) -> io::Result<u32> {
    use std::os::fd::AsRawFd;
    // cachestat(2): a range of two u64 (0, 0: the whole file), and five u64 of answers: cached, dirty, in write-back, ...
    const CACHESTAT: libc::c_long = 451;
    let range = [0_u64; 2];
    let mut found = [0_u64; 5];
    #[expect(
        unsafe_code,
        reason = "both arrays have the size of the structures that the call reads and writes"
    )]
    let answer =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0_u32) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(found[1] + found[2]).unwrap_or(u32::MAX))
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd, RawFd};

    use super::LeaseRefused;

    /// <asm-generic/fcntl.h>; libc does not list it.
    const F_SETSIG: libc::c_int = 10;

    pub(super) fn take_lease(descriptor: RawFd) -> Result<(), LeaseRefused> {
        // The default signal of a broken lease is SIGIO, which ends a process that does not expect it; SIGURG is ignored by default.
        control(descriptor, F_SETSIG, libc::SIGURG).map_err(LeaseRefused::Unavailable)?;
        match control(descriptor, libc::F_SETLEASE, libc::F_WRLCK) {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Err(LeaseRefused::OpenElsewhere),
            Err(error) => Err(LeaseRefused::Unavailable(error)),
        }
    }

    pub(super) fn is_lease_whole(descriptor: RawFd) -> bool {
        control(descriptor, libc::F_GETLEASE, 0).is_ok_and(|lease| lease == libc::F_WRLCK)
    }

    pub(super) fn release_lease(descriptor: RawFd) {
        // Fails only where the kernel has already taken the lease back, which is the state asked for.
        let _already_gone = control(descriptor, libc::F_SETLEASE, libc::F_UNLCK);
    }

    pub(super) fn start_write_back(file: &File, offset: u64, length: u64) {
        let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
        #[expect(unsafe_code, reason = "integers only; the descriptor is open as long as `file` is borrowed")]
        let _hint =
            unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
    }

    fn control(descriptor: RawFd, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
        #[expect(
            unsafe_code,
            reason = "these commands take an integer and touch no memory of ours; a closed descriptor gives EBADF"
        )]
        let answer = unsafe { libc::fcntl(descriptor, command, argument) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::RawFd;

    use super::LeaseRefused;

    pub(super) fn take_lease(_: RawFd) -> Result<(), LeaseRefused> {
        Err(LeaseRefused::Unavailable(io::ErrorKind::Unsupported.into()))
    }

    pub(super) fn is_lease_whole(_: RawFd) -> bool {
        false
    }

    pub(super) fn release_lease(_: RawFd) {}

    pub(super) fn start_write_back(_: &File, _: u64, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary_file() -> (tempfile::TempDir, std::path::PathBuf, File) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"some bytes").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        (folder, path, file)
    }

    #[test]
    fn a_lease_is_granted_on_the_only_descriptor() {
        let (_folder, path, _file) = temporary_file();
        let lease = WriteLease::take(FileIdentity::of(&path).unwrap()).unwrap();
        assert!(lease.is_whole());
        lease.release();
        assert!(WriteLease::take(FileIdentity::of(&path).unwrap()).unwrap().is_whole());
    }

    #[test]
    fn a_second_descriptor_of_our_own_refuses_the_lease() {
        let (_folder, path, _file) = temporary_file();
        let _second = File::open(&path).unwrap();
        let refused = WriteLease::take(FileIdentity::of(&path).unwrap()).unwrap_err();
        assert!(matches!(refused, LeaseRefused::OwnDescriptors(2)), "{refused:?}");
    }

    #[test]
    fn a_mapping_whose_descriptor_is_closed_refuses_the_lease() {
        use std::os::fd::AsRawFd;
        let (_folder, path, _file) = temporary_file();
        let mapped = File::open(&path).unwrap();
        #[expect(
            unsafe_code,
            reason = "a new private mapping at a place that the kernel chooses; never dereferenced"
        )]
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), 4, libc::PROT_READ, libc::MAP_SHARED, mapped.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        drop(mapped);
        let refused = WriteLease::take(FileIdentity::of(&path).unwrap()).unwrap_err();
        #[expect(unsafe_code, reason = "the mapping made above, which nobody refers to")]
        let unmapped = unsafe { libc::munmap(start, 4) };
        assert_eq!(unmapped, 0);
        assert!(matches!(refused, LeaseRefused::OpenElsewhere), "{refused:?}");
        assert!(WriteLease::take(FileIdentity::of(&path).unwrap()).unwrap().is_whole());
    }

    #[test]
    fn a_file_that_is_not_open_here_has_no_lease() {
        let (_folder, path, file) = temporary_file();
        drop(file);
        let refused = WriteLease::take(FileIdentity::of(&path).unwrap()).unwrap_err();
        assert!(matches!(refused, LeaseRefused::OwnDescriptors(0)), "{refused:?}");
    }
}
