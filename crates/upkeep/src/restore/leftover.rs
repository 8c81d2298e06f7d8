//! The file that a restore builds, and what a killed restore left under such a name.
//!
//! Until the exchange it is the new file: a copy of a snapshot. After the exchange the same name means the previous database, until it
//! gets the name under which it is kept. The number of the new file's inode stands in the name, so that both can be told apart
//! whenever the run was killed: the file under the name is the new one exactly if its inode is that one. A file that came here with
//! a copy of its folder has another inode, and is kept.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};

use crate::rebuild::RebuildErrorKind;
use crate::rebuild::error::Doing;
use crate::rebuild::temporary::{self, Abandoned, ENDING, TemporaryFile};

/// Between the name of the database and the process id.
const MARK: &str = ".restoring-";

/// Creates the file beside `database`.
pub(super) fn create(database: &Path) -> io::Result<TemporaryFile> {
    let mut new = TemporaryFile::create_marked(database, MARK)?;
    let inode = fs::metadata(new.path())?.ino();
    let plain = new.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut name: OsString = database.file_name().unwrap_or_default().to_owned();
    let numbers = temporary::numbers_in(new.path().file_name().unwrap_or_default(), database, MARK);
    let Some([process, attempt]) = numbers.as_deref() else {
        return Err(io::Error::other(plain));
    };
    name.push(format!("{MARK}{process}-{attempt}-{inode}{ENDING}"));
    new.rename(&name)?;
    Ok(new)
}

/// What lies under a name of a restore.
#[derive(Debug)]
enum Leftover {
    /// A copy of a snapshot, finished or not.
    New(Abandoned),
    /// A database that was replaced.
    Previous(PathBuf),
}

fn leftovers(database: &Path) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    for path in temporary::leftovers_marked(database, MARK)? {
        let numbers = temporary::numbers_in(path.file_name().unwrap_or_default(), database, MARK);
        let numbers = numbers.unwrap_or_default();
        let state = fs::metadata(&path)?;
        let is_new = match numbers.get(2) {
            Some(inode) => *inode == state.ino(),
            // Killed before it had its whole name.
            None => state.len() == 0,
        };
        let is_alive = numbers.first().is_some_and(|process| is_another_process(*process));
        if is_new {
            found.extend(Abandoned::lock(&path).map(Leftover::New));
        } else if !is_alive {
            // Between the exchange and its name nothing but the process says that the run goes on.
            found.push(Leftover::Previous(path));
        }
    }
    Ok(found)
}

fn is_another_process(process: u64) -> bool {
    process != u64::from(std::process::id()) && Path::new("/proc").join(process.to_string()).exists()
}

/// Removes the copies of snapshots that killed restores of `database` left. Says what went.
pub(crate) fn sweep(database: &Path) -> io::Result<Vec<PathBuf>> {
    let mut swept = Vec::new();
    for found in leftovers(database)? {
        if let Leftover::New(file) = found {
            swept.push(file.remove()?);
        }
    }
    Ok(swept)
}

/// Gives previous databases that killed restores of `database` left unnamed the names that `free_name` chooses. Says which.
pub(super) fn recover(
    database: &Path,
    free_name: impl Fn() -> Result<PathBuf, RebuildErrorKind>,
) -> Result<Vec<PathBuf>, RebuildErrorKind> {
    let mut recovered = Vec::new();
    for found in leftovers(database).doing("looking for files of earlier runs")? {
        if let Leftover::Previous(path) = found {
            let name = free_name()?;
            rustix::fs::renameat_with(CWD, &path, CWD, &name, RenameFlags::NOREPLACE)
                .doing("naming the database of an earlier run")?;
            recovered.push(name);
        }
    }
    Ok(recovered)
}
