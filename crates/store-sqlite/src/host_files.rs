//! What earlier hosts kept of conversations beside the database (C30).
//!
//! Three names in the folder `.host` under the plugins' folder, and nothing else: never followed through a link, never opened.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

/// The folder that hosts keep for themselves.
const FOLDER: &str = ".host";

/// The file that held copies of events, and what SQLite kept beside it.
const NAMES: [&str; 3] = ["session-events.sqlite", "session-events.sqlite-wal", "session-events.sqlite-shm"];

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFile {
    /// Its path.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: ByteCount,
    /// Why it stays, where it does.
    pub refused: Option<Refusal>,
}

/// Why a file stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The folder is a link, or no folder.
    #[error("the folder is a symbolic link, or no folder")]
    NoFolder,
    /// The name is a link, a folder or a device.
    #[error("not a regular file")]
    NotAFile,
    /// The system refuses.
    #[error("the system refuses it ({0})")]
    System(Errno),
}

/// The files under `plugins`, the plugins' folder. What is not there is not in the list.
pub fn find(plugins: &Path) -> Vec<HostFile> {
    let folder = plugins.join(FOLDER);
    let refused = |path: PathBuf, refusal| HostFile { path, bytes: ByteCount::ZERO, refused: Some(refusal) };
    match open(&folder) {
        Ok(handle) => NAMES.iter().filter_map(|name| look(&handle, &folder, name)).collect(),
        Err(Errno::NOENT) => Vec::new(),
        Err(Errno::LOOP | Errno::NOTDIR) => vec![refused(folder, Refusal::NoFolder)],
        Err(error) => vec![refused(folder, Refusal::System(error))],
    }
}

/// Removes the files under `plugins`, and answers what was found: those that stay say why.
pub fn remove(plugins: &Path) -> Vec<HostFile> {
    let mut found = find(plugins);
    let Ok(handle) = open(&plugins.join(FOLDER)) else { return found };
    let mut is_changed = false;
    for file in found.iter_mut().filter(|file| file.refused.is_none()) {
        let name = file.path.file_name().unwrap_or_default();
        // By the folder that was looked into: a link that takes its place meanwhile leads nowhere.
        match unlinkat(&handle, name, AtFlags::empty()) {
            Ok(()) => is_changed = true,
            Err(Errno::NOENT) => {}
            Err(error) => file.refused = Some(Refusal::System(error)),
        }
    }
    if is_changed {
        // The names are gone for every reader; where the folder cannot be synced, a loss of power may bring one back, for the next run.
        drop(fs::File::from(handle).sync_all());
    }
    found
}

fn open(folder: &Path) -> Result<OwnedFd, Errno> {
    openat(
        CWD,
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn look(handle: &OwnedFd, folder: &Path, name: &str) -> Option<HostFile> {
    let (bytes, refused) = match statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
            (u64::try_from(found.st_size).unwrap_or_default(), None)
        }
        Ok(_) => (0, Some(Refusal::NotAFile)),
        Err(Errno::NOENT) => return None,
        Err(error) => (0, Some(Refusal::System(error))),
    };
    Some(HostFile { path: folder.join(name), bytes: ByteCount::new(bytes), refused })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn three_files_go_and_nothing_else() {
        let plugins = tempfile::tempdir().unwrap();
        assert_eq!(remove(plugins.path()), []);
        let folder = plugins.path().join(".host");
        fs::create_dir(&folder).unwrap();
        for name in NAMES.iter().chain(&["conversation-token.key", "session-events.sqlite-journal"]) {
            fs::write(folder.join(name), "not opened").unwrap();
        }
        let removed = remove(plugins.path());
        assert!(removed.iter().all(|file| file.refused.is_none() && file.bytes.get() == 10), "{removed:?}");
        let mut left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["conversation-token.key", "session-events.sqlite-journal"]);
        assert_eq!(remove(plugins.path()), []);
    }

    #[test]
    fn links_stay_with_what_they_lead_to() {
        let plugins = tempfile::tempdir().unwrap();
        let folder = plugins.path().join(".host");
        fs::create_dir(&folder).unwrap();
        let target = plugins.path().join("precious");
        fs::write(&target, "precious").unwrap();
        symlink(&target, folder.join(NAMES[0])).unwrap();
        fs::create_dir(folder.join(NAMES[1])).unwrap();
        let stay = remove(plugins.path());
        assert!(stay.iter().all(|file| file.refused == Some(Refusal::NotAFile)), "{stay:?}");
        assert_eq!(stay.len(), 2);
        assert!(target.exists() && folder.join(NAMES[0]).is_symlink());

        let other = tempfile::tempdir().unwrap();
        symlink(&folder, other.path().join(".host")).unwrap();
        assert_eq!(remove(other.path())[0].refused, Some(Refusal::NoFolder));
        assert!(folder.join(NAMES[0]).is_symlink());
    }
}
