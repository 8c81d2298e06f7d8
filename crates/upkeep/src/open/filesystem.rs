//! On what kind of file system a file lies.

use std::io;
use std::path::Path;

/// The file system of a database, as far as it matters for locks and shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// A local one, or one that is not known to be remote.
    Local,
    /// The network one of this name: SQLite's locks may not reach other machines, and a write-ahead log needs shared memory.
    Network(&'static str),
}

impl FileSystem {
    /// The file system that holds `path`.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = rustix::fs::statfs(path)?;
        // The field is signed on some targets; only its low 32 bits are the magic number.
        Ok(Self::from_magic(u32::try_from(i128::from(found.f_type) & 0xffff_ffff).unwrap_or(0)))
    }

    /// The file system that holds `path`; not known on this system.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_: &Path) -> io::Result<Self> {
        Ok(Self::Local)
    }

    /// From the magic number in `statfs` (statfs(2)). FUSE is not in the list: encrypted home folders use it locally.
    #[cfg(any(target_os = "linux", test))]
    fn from_magic(magic: u32) -> Self {
        match magic {
            0x6969 => Self::Network("nfs"),
            0xff53_4d42 | 0xfe53_4d42 | 0x517b => Self::Network("smb"),
            0x0102_1997 => Self::Network("9p"),
            0x5346_414f | 0x6b41_4653 => Self::Network("afs"),
            0x00c3_6400 => Self::Network("ceph"),
            0x7375_7245 => Self::Network("coda"),
            0x0bd0_0bd0 => Self::Network("lustre"),
            0x0116_1970 => Self::Network("gfs2"),
            0x7461_636f => Self::Network("ocfs2"),
            0x786f_4256 => Self::Network("vboxsf"),
            0xbacb_acbc => Self::Network("vmhgfs"),
            _ => Self::Local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_file_systems_are_told_from_local_ones() {
        for (magic, expected) in [
            (0x6969, FileSystem::Network("nfs")),
            (0xff53_4d42, FileSystem::Network("smb")),
            (0x0102_1997, FileSystem::Network("9p")),
            (0xef53, FileSystem::Local),
            (0x9123_683e, FileSystem::Local),
            (0x6573_5546, FileSystem::Local),
        ] {
            assert_eq!(FileSystem::from_magic(magic), expected, "{magic:#x}");
        }
    }
}
