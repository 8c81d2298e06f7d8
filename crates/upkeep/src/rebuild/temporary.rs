//! The file that is built beside a database, its name, and what earlier runs left under such names.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::rebuild::place::folder_of;

/// Between the name of the database and the process id.
const MARK: &str = ".headwater-";
const ENDING: &str = ".tmp";

/// A file of ours beside a database. Removed when dropped, unless it was given another name or was kept.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    path: PathBuf,
    is_ours: bool,
}

impl TemporaryFile {
    /// Creates an empty file beside `database`, readable by its owner only.
    pub(crate) fn create(database: &Path) -> io::Result<Self> {
        Self::create_marked(database, MARK)
    }

    /// The same, with another `mark` in its name: a file that no later run takes for its own.
    pub(crate) fn create_marked(database: &Path, mark: &str) -> io::Result<Self> {
        let process = std::process::id();
        for attempt in 0_u32..1000 {
            let mut name: OsString = database.file_name().unwrap_or_default().to_owned();
            name.push(format!("{mark}{process}-{attempt}{ENDING}"));
            let path = folder_of(database).join(name);
            match File::options().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => return Ok(Self { path, is_ours: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves whatever is under the name where it is.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.is_ours = false;
        std::mem::take(&mut self.path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.is_ours {
            // A file that cannot be removed is swept by the next run.
            let _swept_later = fs::remove_file(&self.path);
        }
    }
}

/// Files that earlier runs on `database` left beside it, sorted. One of them may be an old database: a run that was killed after the
/// exchange leaves it under such a name. So they may go only once `database` itself opens and checks.
pub(crate) fn leftovers(database: &Path) -> io::Result<Vec<PathBuf>> {
    let mut start = database.file_name().unwrap_or_default().as_bytes().to_vec();
    start.extend_from_slice(MARK.as_bytes());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder_of(database))? {
        let entry = entry?;
        let name = entry.file_name();
        let middle =
            name.as_bytes().strip_prefix(&start[..]).and_then(|rest| rest.strip_suffix(ENDING.as_bytes()));
        let is_ours = middle.is_some_and(|middle| {
            !middle.is_empty() && middle.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
        });
        if is_ours && entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_our_own_name_are_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("opencode.db");
        let names = [
            ("opencode.db.headwater-12-0.tmp", true),
            ("opencode.db.headwater-7.tmp", true),
            ("opencode.db.headwater-.tmp", false),
            ("opencode.db.headwater-mine.tmp", false),
            ("opencode.db.headwater-12-0.tmp.bak", false),
            ("other.db.headwater-12-0.tmp", false),
            ("opencode.db", false),
            ("opencode.db-wal", false),
        ];
        for (name, _) in names {
            fs::write(folder.path().join(name), b"x").unwrap();
        }
        fs::create_dir(folder.path().join("opencode.db.headwater-99-0.tmp")).unwrap();
        let mut expected: Vec<PathBuf> =
            names.iter().filter(|(_, ours)| *ours).map(|(name, _)| folder.path().join(name)).collect();
        expected.sort();
        assert_eq!(leftovers(&database).unwrap(), expected);
    }

    #[test]
    fn a_dropped_file_is_gone_and_a_kept_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("opencode.db");
        let dropped = TemporaryFile::create(&database).unwrap();
        let kept = TemporaryFile::create(&database).unwrap();
        assert_ne!(dropped.path(), kept.path());
        let gone = dropped.path().to_owned();
        drop(dropped);
        assert!(!gone.exists());
        assert!(kept.keep().exists());
    }
}
