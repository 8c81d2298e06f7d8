//! A copy of the file before its journal goes (C29).

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::schema::OpenErrorKind;

/// Names that are tried for a copy before giving up.
const NAMES: u32 = 1000;

/// Copies the database of `db`, which stands at `path`, to a file beside it, checks the copy and syncs it. Answers with its path. The copy
/// appears under its name only when it is whole.
pub(crate) fn beside(db: &Connection, path: &Path) -> Result<PathBuf, OpenErrorKind> {
    let partial = named(path, ".before-cutover.partial");
    remove(&partial)?;
    let copied = copy(db, &partial).and_then(|()| place(&partial, path));
    if copied.is_err() {
        remove(&partial)?;
    }
    copied
}

fn copy(db: &Connection, to: &Path) -> Result<(), OpenErrorKind> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    #[expect(clippy::disallowed_methods, reason = "a file of this module alone")]
    let mut copy = Connection::open_with_flags(to, flags)?;
    pages(db, &mut copy)?;
    let found: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(OpenErrorKind::Backup);
    }
    copy.close().map_err(|(_, error)| error)?;
    File::open(to)?.sync_all()?;
    Ok(())
}

/// Copies all pages in one step: at one snapshot, so that another program's commit does not begin the copy anew. Where one keeps the file locked, the busy
/// timeout of the connection ends the wait.
fn pages(db: &Connection, copy: &mut Connection) -> Result<(), OpenErrorKind> {
    let backup = Backup::new(db, copy)?;
    match backup.step(-1)? {
        StepResult::Done => Ok(()),
        StepResult::More | StepResult::Busy | StepResult::Locked | _ => Err(OpenErrorKind::Busy),
    }
}

/// Gives the copy a name that nothing has.
fn place(partial: &Path, path: &Path) -> Result<PathBuf, OpenErrorKind> {
    for number in 1..=NAMES {
        let target = named(path, &format!(".before-cutover-{number}"));
        match fs::hard_link(partial, &target) {
            Ok(()) => {
                fs::remove_file(partial)?;
                if let Some(folder) = target.parent() {
                    File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?
                        .sync_all()?;
                }
                return Ok(target);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(std::io::Error::from(std::io::ErrorKind::AlreadyExists).into())
}

fn named(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn remove(path: &Path) -> std::io::Result<()> {
    for ending in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(named(path, ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
