//! Where a database stands: whether its file system and its neighbours allow that another file takes its place.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::DatabaseFile;
use crate::rebuild::error::{Doing, Named, RebuildErrorKind};

/// Refuses a file that no other may replace (P16). Opens nothing.
pub(crate) fn ensure_replaceable(file: &DatabaseFile) -> Result<(), RebuildErrorKind> {
    ensure_rewritable(file)?;
    let names = fs::metadata(file.path()).doing("looking at the database")?.nlink();
    if names > 1 { Err(RebuildErrorKind::HardLinks { names }) } else { Ok(()) }
}

/// Refuses a file whose pages must not all change. Opens nothing.
pub(crate) fn ensure_rewritable(file: &DatabaseFile) -> Result<(), RebuildErrorKind> {
    if let Some(file_system) = file.network_file_system() {
        return Err(RebuildErrorKind::NetworkFileSystem { file_system });
    }
    if let Some(beside) = replication_state(file.path()) {
        return Err(RebuildErrorKind::Replicated { beside });
    }
    let mut holders = file.holders();
    holders.retain(|holder| holder.holds_deleted);
    if holders.is_empty() { Ok(()) } else { Err(RebuildErrorKind::DeletedLog { holders: Named(holders) }) }
}

/// The folder that `path` is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Bytes that an ordinary user may still write beside `path`.
pub(crate) fn free_bytes(path: &Path) -> Result<u64, RebuildErrorKind> {
    let found = rustix::fs::statvfs(folder_of(path)).doing("asking for free disk")?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Puts the names in the folder of `path` on the disk.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    #[cfg(test)]
    FOLDERS_SYNCED.with(|count| count.set(count.get() + 1));
    fs::File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
thread_local! {
    /// How often this thread has synced a folder.
    pub(crate) static FOLDERS_SYNCED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// State of a program that replicates pages: Litestream keeps `.NAME-litestream` (or, older, `NAME-litestream`) with the shadow log
/// under `generations`.
fn replication_state(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let beside = |before: &str, after: &str| {
        let mut own = std::ffi::OsString::from(before);
        own.push(name);
        own.push(after);
        folder_of(path).join(own)
    };
    [
        beside(".", "-litestream"),
        beside("", "-litestream"),
        beside("", "-wal.shadow"),
        beside(".", "-wal.shadow"),
    ]
    .into_iter()
    .find(|candidate| fs::symlink_metadata(candidate).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_name_is_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("opencode.db")), Path::new("."));
        assert_eq!(folder_of(Path::new("/a/opencode.db")), Path::new("/a"));
    }
}
