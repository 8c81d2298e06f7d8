//! Files that are whole under their name, or not there.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, NamedTempFile};

use crate::failure::Failure;
use crate::status::Status;

/// How the name of a file ends that an export has not finished.
const UNFINISHED: &str = ".export";
/// Letters and digits between the name of the export and that ending, which `tempfile` chooses.
const MIDDLE_BYTES: usize = 6;
/// Age from which an unfinished file without a lock is one that a killed export left.
const UNFINISHED_AGE_MIN: Duration = Duration::from_secs(2);

/// A file that is being written beside the place of its name.
pub(crate) struct WholeFile {
    path: PathBuf,
    file: NamedTempFile,
    /// Whether one of that name may be replaced.
    force: bool,
}

impl WholeFile {
    /// Begins to write what will be called `path`.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        let fail = |error: io::Error| of_file(path, &error);
        // What is put under a name takes the place of a device as well as of a file.
        let is_file = path.metadata().map_or(true, |found| found.is_file());
        if !is_file || (!force && path.symlink_metadata().is_ok()) {
            return Err(fail(io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        sweep(folder, &prefix).map_err(fail)?;
        let file: NamedTempFile =
            Builder::new().prefix(&prefix).suffix(UNFINISHED).tempfile_in(folder).map_err(fail)?;
        file.as_file().lock().map_err(fail)?;
        Ok(Self { path: path.to_owned(), file, force })
    }

    /// What writes into it; to be flushed.
    pub(crate) fn writer(&self) -> BufWriter<&File> {
        BufWriter::with_capacity(256 * 1024, self.file.as_file())
    }

    /// What an error of the writer means.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        of_file(&self.path, error)
    }

    /// Puts it on the disk and gives it its name.
    pub(crate) fn put_in_place(self) -> Result<(), Failure> {
        let Self { path, file, force } = self;
        file.as_file().sync_all().map_err(|error| of_file(&path, &error))?;
        let named = if force { file.persist(&path) } else { file.persist_noclobber(&path) };
        named.map(drop).map_err(|error| of_file(&path, &error.error))
    }
}

/// Removes what killed exports to the same place left. Who still writes holds a lock on the file; one that is not yet a moment old may
/// be about to take it.
fn sweep(folder: &Path, prefix: &str) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let middle = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(UNFINISHED));
        let is_ours = middle.is_some_and(|middle| {
            middle.len() == MIDDLE_BYTES && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if !is_ours || !entry.file_type()?.is_file() {
            continue;
        }
        // One that cannot be opened is another user's, and stays.
        let Ok(file) = File::open(entry.path()) else { continue };
        let is_settled = file.metadata()?.modified()?.elapsed().is_ok_and(|age| age >= UNFINISHED_AGE_MIN);
        if is_settled && file.try_lock().is_ok() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn of_file(path: &Path, error: &io::Error) -> Failure {
    let path = path.to_string_lossy();
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Failure::new(Status::Blocked, "exists", format_args!("{path} is there already"))
            .with_hint("name another file, or replace it with --force; nothing was changed");
    }
    Failure::new(Status::Other, "io", format_args!("cannot write {path}: {error}"))
        .with_hint("name a file that you may write, on a disk with room; no file was left there")
}
