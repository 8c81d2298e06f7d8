//! A database file, found and looked at before anything opens it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::PATH_BYTES_MAX;
use super::filesystem::FileSystem;
use super::fingerprint::{FileId, FileState};
use super::registry::{self, Format};
use super::{OpenError, OpenErrorKind};

/// A regular file that starts like an SQLite database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseFile {
    path: PathBuf,
    id: FileId,
    is_wal: bool,
    is_newer: bool,
    network: Option<&'static str>,
}

impl DatabaseFile {
    /// Resolves symlinks in `path`, checks what is there, and looks at the first bytes.
    ///
    /// The type is checked before anything is opened, so that a pipe does not hang the caller. The file is opened, read and closed,
    /// except while this process has it open through [`super::ReadDatabase`] or [`super::WriteDatabase`]: closing any descriptor of a
    /// file drops all of a process's locks on it.
    ///
    /// # Errors
    /// [`OpenError`] where there is no readable SQLite database.
    pub fn find(path: &Path) -> Result<Self, OpenError> {
        Self::examine(path).map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    fn examine(given: &Path) -> Result<Self, OpenErrorKind> {
        let path = match fs::canonicalize(given) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && given == Path::new(":memory:") => {
                return Err(OpenErrorKind::InMemory);
            }
            resolved => resolved?,
        };
        let bytes = path.as_os_str().len();
        if bytes > PATH_BYTES_MAX {
            return Err(OpenErrorKind::PathTooLong { bytes });
        }
        ensure_regular(&path)?;
        let state = FileState::of(&path)?.ok_or(OpenErrorKind::NotFound)?;
        if state.bytes == 0 {
            return Err(OpenErrorKind::Empty);
        }
        let Format { is_wal, is_newer } = registry::format_of(state.id, &path)?;
        let network = match FileSystem::of(&path)? {
            FileSystem::Local => None,
            FileSystem::Network(name) => Some(name),
        };
        let file = Self { path, id: state.id, is_wal, is_newer, network };
        file.ensure_side_files()?;
        Ok(file)
    }

    /// A file that is taken as it is, for recovery from it: nothing is asked of its header.
    pub(crate) fn find_damaged(path: &Path, is_wal: bool) -> Result<Self, OpenError> {
        let examine = || {
            let path = fs::canonicalize(path)?;
            ensure_regular(&path)?;
            let state = FileState::of(&path)?.ok_or(OpenErrorKind::NotFound)?;
            if state.bytes == 0 {
                return Err(OpenErrorKind::Empty);
            }
            let file = Self { path, id: state.id, is_wal, is_newer: false, network: None };
            file.ensure_side_files()?;
            Ok(file)
        };
        examine().map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    /// Refuses names beside the database that are no files: SQLite would open them, and wait for ever at a pipe.
    fn ensure_side_files(&self) -> Result<(), OpenErrorKind> {
        let is_other = |suffix: &&str| fs::metadata(self.beside(suffix)).is_ok_and(|found| !found.is_file());
        match ["-wal", "-shm", "-journal"].into_iter().find(is_other) {
            Some(suffix) => Err(OpenErrorKind::SideFileNotAFile { suffix }),
            None => Ok(()),
        }
    }

    /// The path with all symlinks resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the header says write-ahead log.
    pub fn is_wal(&self) -> bool {
        self.is_wal
    }

    /// Whether only a newer SQLite than this may write it.
    pub(super) fn is_newer(&self) -> bool {
        self.is_newer
    }

    /// Name of the network file system that holds it, where it is one. Reading is allowed there and may be stale; writing is refused.
    pub fn network_file_system(&self) -> Option<&'static str> {
        self.network
    }

    /// A file beside the database: `suffix` is `-wal`, `-shm` or `-journal`.
    pub fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }

    /// The folder that holds it.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// The file name.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Device and inode.
    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    /// Whether a rollback journal with content lies beside a write-ahead-log database: a change of the journal mode was cut off.
    /// SQLite itself looks for one beside a rollback-journal database.
    pub(super) fn has_hot_journal(&self) -> io::Result<bool> {
        if !self.is_wal {
            return Ok(false);
        }
        match fs::File::open(self.beside("-journal")) {
            Ok(mut journal) => {
                let mut first = [0_u8; 1];
                Ok(io::Read::read(&mut journal, &mut first)? == 1 && first[0] != 0)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether `output`, which need not exist, is the database at `database` or has the name of a file beside it: what is written there
/// would destroy the database, or be taken for its log.
pub fn is_of_database(database: &Path, output: &Path) -> bool {
    let database = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let named = output.file_name().map(|name| folder.join(name));
    let state = |path: &Path| FileState::of(path).ok().flatten().map(|state| state.id);
    let written = state(output);
    ["", "-wal", "-shm", "-journal"].into_iter().any(|suffix| {
        let mut own = database.as_os_str().to_owned();
        own.push(suffix);
        let own = PathBuf::from(own);
        named.as_ref() == Some(&own) || (written.is_some() && written == state(&own))
    })
}

fn ensure_regular(path: &Path) -> Result<(), OpenErrorKind> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(OpenErrorKind::Directory);
    }
    if kind.is_file() { Ok(()) } else { Err(OpenErrorKind::NotAFile) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_database_and_of_its_side_files_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("opencode.db"), b"x").unwrap();
        fs::create_dir(at("sub")).unwrap();
        std::os::unix::fs::symlink("opencode.db", at("link.db")).unwrap();
        fs::hard_link(at("opencode.db"), at("hard.db")).unwrap();
        for (name, expected) in [
            ("opencode.db", true),
            ("sub/../opencode.db", true),
            ("link.db", true),
            ("hard.db", true),
            ("opencode.db-wal", true),
            ("sub/../opencode.db-shm", true),
            ("opencode.db-journal", true),
            ("link.db-wal", false),
            ("opencode.db2", false),
            ("sub/opencode.db", false),
            ("none/opencode.db", false),
        ] {
            assert_eq!(is_of_database(&at("opencode.db"), &at(name)), expected, "{name}");
            assert_eq!(is_of_database(&at("link.db"), &at(name)), expected, "{name}, by the link");
        }
    }
}
