//! The file that is built beside a database, its name, and what earlier runs left under such names.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::rebuild::place::folder_of;

/// Between the name of the database and the process id.
const MARK: &str = ".headwater-";
pub(crate) const ENDING: &str = ".tmp";

/// A file of ours beside a database. Removed when dropped, unless it was given another name or was kept.
///
/// While it lives it is locked with `flock(2)`, which SQLite does not use: so another run can tell it from what a killed one left.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    path: PathBuf,
    is_ours: bool,
    held: Option<File>,
}

impl TemporaryFile {
    /// Creates an empty file beside `database`, readable by its owner only.
    pub(crate) fn create(database: &Path) -> io::Result<Self> {
        Self::create_marked(database, MARK)
    }

    /// The same, with another `mark` in its name: a file that no later run takes for its own.
    pub(crate) fn create_marked(database: &Path, mark: &str) -> io::Result<Self> {
        Self::create_seen(database, mark, |_| ())
    }

    /// The same; `created` is told the path of each file that is there and not locked yet.
    fn create_seen(database: &Path, mark: &str, mut created: impl FnMut(&Path)) -> io::Result<Self> {
        let process = std::process::id();
        for attempt in 0_u32..1000 {
            let mut name: OsString = database.file_name().unwrap_or_default().to_owned();
            name.push(format!("{mark}{process}-{attempt}{ENDING}"));
            let path = folder_of(database).join(name);
            match File::options().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    created(&path);
                    if let Some(held) = Self::held(path, file)? {
                        return Ok(held);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Locks the file. `None` where a sweep came between its creation and the lock: whoever sweeps holds the lock until the name is gone, so
    /// the file is lost exactly if the lock is taken, or is had with no name left.
    fn held(path: PathBuf, file: File) -> io::Result<Option<Self>> {
        // A file system without such locks has no way to tell a killed run from a slow one: then nothing is swept there.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Ok(None);
        }
        let is_named = file.metadata()?.nlink() > 0;
        Ok(is_named.then_some(Self { path, is_ours: true, held: Some(file) }))
    }

    /// Names the file anew, beside where it was.
    pub(crate) fn rename(&mut self, name: &OsStr) -> io::Result<()> {
        let path = self.path.with_file_name(name);
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }

    /// Closes the descriptor that marks the file as used: before it becomes the database, of which no descriptor may be closed.
    pub(crate) fn let_go(&mut self) {
        self.held = None;
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

/// A file that no run holds any more, locked against a run that is about to.
#[derive(Debug)]
pub(crate) struct Abandoned {
    path: PathBuf,
    _held: File,
}

impl Abandoned {
    /// Locks the file at `path`; `None` where a run holds it, or it is gone.
    pub(crate) fn lock(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self { path: path.to_owned(), _held: file })
    }

    /// Removes it before the lock goes. Answers its path.
    pub(crate) fn remove(self) -> io::Result<PathBuf> {
        match fs::remove_file(&self.path) {
            // Another sweep was quicker.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(self.path),
        }
    }
}

/// Files that earlier rebuilds of `database` left beside it, sorted. One of them may be an old database: a run that was killed after
/// the exchange leaves it under such a name. So they may go only once `database` itself opens and checks.
pub(crate) fn leftovers(database: &Path) -> io::Result<Vec<PathBuf>> {
    leftovers_marked(database, MARK)
}

/// Files beside `database` with `mark` in their names, sorted.
pub(crate) fn leftovers_marked(database: &Path, mark: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder_of(database))? {
        let entry = entry?;
        if numbers_in(&entry.file_name(), database, mark).is_some() && entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Removes what killed runs left under `mark`, where nothing under it can be worth keeping. Says what went.
pub(crate) fn sweep_marked(database: &Path, mark: &str) -> io::Result<Vec<PathBuf>> {
    let leftovers = leftovers_marked(database, mark)?;
    leftovers.iter().filter_map(|leftover| Abandoned::lock(leftover)).map(Abandoned::remove).collect()
}

/// The numbers between the mark and the ending of a name of ours, with `-` between them; `None` for any other name.
pub(crate) fn numbers_in(name: &OsStr, database: &Path, mark: &str) -> Option<Vec<u64>> {
    let rest = name.as_bytes().strip_prefix(database.file_name()?.as_bytes())?;
    let numbers = rest.strip_prefix(mark.as_bytes())?.strip_suffix(ENDING.as_bytes())?;
    let numbers = std::str::from_utf8(numbers).ok()?;
    numbers.split('-').map(|number| number.parse().ok()).collect()
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
    fn a_file_in_use_is_not_swept_and_what_a_killed_run_left_is() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("opencode.db");
        let used = TemporaryFile::create_marked(&database, ".snapshot-").unwrap();
        let left = folder.path().join("opencode.db.snapshot-1-0.tmp");
        fs::write(&left, b"x").unwrap();
        assert_eq!(sweep_marked(&database, ".snapshot-").unwrap(), std::slice::from_ref(&left));
        assert!(used.path().exists() && !left.exists());
    }

    #[test]
    fn a_file_that_a_sweep_takes_before_it_is_locked_is_made_again_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("opencode.db");
        let mut swept = Vec::new();
        let made = TemporaryFile::create_seen(&database, ".snapshot-", |path| {
            if swept.is_empty() {
                swept = sweep_marked(&database, ".snapshot-").unwrap();
                assert_eq!(swept, [path], "nothing but a lock tells a new file from one that was left");
            }
        })
        .unwrap();
        assert!(made.path().exists() && made.path() != swept[0]);
        assert_eq!(sweep_marked(&database, ".snapshot-").unwrap(), Vec::<PathBuf>::new(), "it is locked");
    }

    #[test]
    fn a_file_that_a_sweep_is_about_to_remove_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("opencode.db");
        let mut sweep = None;
        let made = TemporaryFile::create_seen(&database, ".snapshot-", |path| {
            sweep = sweep.take().or_else(|| Abandoned::lock(path));
        })
        .unwrap();
        let swept = sweep.unwrap().remove().unwrap();
        assert!(made.path().exists() && made.path() != swept && !swept.exists());
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
