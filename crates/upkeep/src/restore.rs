//! Putting a snapshot in the place of a database (P17): database and log together, by the takeover of a rebuild.
//!
//! Killed at any step it leaves the old database or the new one under the path, and besides at most one file, of which the next restore
//! knows what it is (`leftover`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use rustix::fs::{CWD, RenameFlags};
use serde::Serialize;

use crate::backup::{is_taken, open_and_copy};
use crate::observer::Observer;
use crate::os::{FileIdentity, LeaseRefused, WriteLease};
use crate::rebuild::error::{Doing, Named};
use crate::rebuild::exclusive::ExclusiveDatabase;
use crate::rebuild::temporary::TemporaryFile;
use crate::rebuild::{RebuildError, RebuildErrorKind, Step, attributes, new_file, place, takeover};
use crate::{Content, DatabaseFile, OpenErrorKind};

pub(crate) mod leftover;

/// How a restore is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether the database that is replaced is removed instead of kept under another name.
    pub forget_previous: bool,
    /// What the snapshot must hold.
    pub content: Content,
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// The database, symlinks resolved.
    pub path: PathBuf,
    /// The snapshot it was restored from.
    pub from: PathBuf,
    /// Its bytes.
    pub bytes: ByteCount,
    /// Rows in it.
    pub rows: u64,
    /// Where the previous database is; its log is merged into it, or beside it under the same name with `-wal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<PathBuf>,
    /// Unfinished files of killed restores, which are removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<PathBuf>,
    /// Previous databases that killed restores had not yet named, under the names that they have now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<PathBuf>,
    /// The receipts of prunes on this path speak of content that is no longer there: whoever keeps receipts marks them superseded.
    pub supersedes_receipts: bool,
}

/// Steps of a restore besides those of the copy and of the takeover, as `observer.reached` gives them. The second is reached only
/// where what is at the path is too damaged to be locked.
pub const STEPS: [&str; 3] = ["prepared", "log-set-aside", "restored"];

/// Restores the database at `path` from the snapshot at `from`. Nobody may have the database open; it may be damaged or gone.
///
/// # Errors
/// [`RebuildError`]; the database is as it was, unless the kind says otherwise. Its path is that of the snapshot where the snapshot cannot
/// be read.
pub fn run(
    path: &Path,
    from: &Path,
    options: RestoreOptions,
    observer: &dyn Observer,
) -> Result<RestoreReport, RebuildError> {
    let of_database = |kind: RebuildErrorKind| kind.at(path);
    let target = Target::find(path, from).map_err(of_database)?;
    let copied = copy(&target, from, options.content, observer)
        .map_err(|kind| if is_of_snapshot(&kind) { kind.at(from) } else { of_database(kind) })?;
    put_in_place(target, copied, from, options, observer).map_err(of_database)
}

/// The path that gets the snapshot, symlinks resolved, and whether anything is there.
struct Target {
    path: PathBuf,
    is_there: bool,
}

impl Target {
    fn find(path: &Path, from: &Path) -> Result<Self, RebuildErrorKind> {
        let is_there = is_taken(path).doing("looking at the database")?;
        let path =
            if is_there { fs::canonicalize(path).doing("looking at the database")? } else { path.to_owned() };
        if FileIdentity::of(&path).is_ok_and(|own| FileIdentity::of(from).is_ok_and(|other| own == other)) {
            return Err(RebuildErrorKind::Unsupported("the snapshot is the database itself".into()));
        }
        Ok(Self { path, is_there })
    }
}

/// A copy of the snapshot beside the target, compared with it.
struct Copied {
    new: TemporaryFile,
    is_wal: bool,
    rows: u64,
    swept: Vec<PathBuf>,
}

fn copy(
    target: &Target,
    from: &Path,
    content: Content,
    observer: &dyn Observer,
) -> Result<Copied, RebuildErrorKind> {
    let mut swept = Vec::new();
    let (source, new, found) = open_and_copy(from, content, observer, || {
        // What is left was a copy of some snapshot, and its room may be needed.
        swept = leftover::sweep(&target.path)?;
        leftover::create(&target.path)
    })?;
    Ok(Copied { new, is_wal: source.is_wal(), rows: found.rows, swept })
}

/// Whether what went wrong while the snapshot was copied is a fault of the snapshot: whoever reads of damage must know which file is meant.
fn is_of_snapshot(kind: &RebuildErrorKind) -> bool {
    matches!(kind, RebuildErrorKind::Open(_) | RebuildErrorKind::Damaged)
}

fn put_in_place(
    target: Target,
    copied: Copied,
    from: &Path,
    options: RestoreOptions,
    observer: &dyn Observer,
) -> Result<RestoreReport, RebuildErrorKind> {
    let Target { path, is_there } = target;
    let Copied { new, is_wal, rows, swept } = copied;
    prepare(&new, is_there.then_some(&path), is_wal)?;
    let bytes = fs::metadata(new.path()).doing("looking at the new file")?.len();
    observer.reached(STEPS[0]);
    let recovered = leftover::recover(&path, || kept_name(&path))?;
    let kept = kept_name(&path)?;
    let previous = if is_there {
        replace(&path, new, (!options.forget_previous).then_some(&kept), observer)?;
        (!options.forget_previous).then_some(kept)
    } else {
        settle_in(&path, new, &kept)?;
        None
    };
    observer.reached(STEPS[2]);
    Ok(RestoreReport {
        path,
        from: from.to_owned(),
        bytes: ByteCount::new(bytes),
        rows,
        previous,
        swept,
        recovered,
        supersedes_receipts: true,
    })
}

/// Gives the new file its journal mode and the owner and mode of the database, and puts it on the disk.
fn prepare(new: &TemporaryFile, old: Option<&PathBuf>, is_wal: bool) -> Result<(), RebuildErrorKind> {
    let file = File::options().read(true).write(true).open(new.path()).doing("opening the new file")?;
    new_file::set_journal_mode(&file, is_wal).doing("writing the header of the new file")?;
    if let Some(old) = old {
        attributes::copy(old, &file).doing("keeping owner and mode")?;
    }
    file.sync_all().doing("putting the new file on the disk")?;
    place::sync_folder(new.path()).doing("putting the folder on the disk")
}

/// The first free name of the form `NAME.before-restore-N`, with the names of its log.
fn kept_name(path: &Path) -> Result<PathBuf, RebuildErrorKind> {
    for number in 1_u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".before-restore-{number}"));
        let name = PathBuf::from(name);
        let taken = ["", "-wal", "-shm", "-journal"].map(|suffix| beside(&name, suffix));
        if taken
            .iter()
            .map(|name| is_taken(name))
            .collect::<Result<Vec<_>, _>>()
            .doing("choosing a name")?
            .contains(&true)
        {
            continue;
        }
        return Ok(name);
    }
    Err(RebuildErrorKind::Exists(path.to_owned()))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Where the path has no database: a log under its name belongs to nothing and must not be read into the new file.
fn settle_in(path: &Path, mut new: TemporaryFile, kept: &Path) -> Result<(), RebuildErrorKind> {
    set_aside(path, kept)?;
    new.let_go();
    match rustix::fs::renameat_with(CWD, new.path(), CWD, path, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::EXIST) => return Err(RebuildErrorKind::Replaced),
        result => result.doing("naming the new file")?,
    }
    drop(new.keep());
    place::sync_folder(path).doing("putting the folder on the disk")
}

fn set_aside(path: &Path, kept: &Path) -> Result<(), RebuildErrorKind> {
    for suffix in ["-wal", "-journal"] {
        match fs::rename(beside(path, suffix), beside(kept, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).doing("setting the old log aside");
            }
            _ => {}
        }
    }
    match fs::remove_file(beside(path, "-shm")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing("removing the old log's index")
        }
        _ => Ok(()),
    }
}

fn replace(
    path: &Path,
    new: TemporaryFile,
    kept: Option<&PathBuf>,
    observer: &dyn Observer,
) -> Result<(), RebuildErrorKind> {
    let locked = DatabaseFile::find(path)
        .map_err(|error| RebuildErrorKind::Open(error.kind))
        .and_then(|file| place::ensure_replaceable(&file).map(|()| file))
        .and_then(ExclusiveDatabase::lock);
    match locked {
        Ok(locked) => takeover::take_over(locked, new, false, kept.map(PathBuf::as_path), observer).map(drop),
        Err(kind) if is_beyond_locking(&kind) => replace_damaged(path, new, kept, observer),
        Err(kind) => Err(kind),
    }
}

/// What is at the path is so damaged that SQLite takes no lock on it.
fn is_beyond_locking(kind: &RebuildErrorKind) -> bool {
    matches!(
        kind,
        RebuildErrorKind::Damaged
            | RebuildErrorKind::Open(
                OpenErrorKind::NotADatabase
                    | OpenErrorKind::Empty
                    | OpenErrorKind::Damaged
                    | OpenErrorKind::NewerFormat
            )
    )
}

/// Without a lock the lease alone proves that nobody has the file open. Its log cannot be merged and leaves with it, first: a new
/// database with the old log beside it would be a mix. A crash in between leaves the damaged file without its log, which is kept.
fn replace_damaged(
    path: &Path,
    mut new: TemporaryFile,
    kept: Option<&PathBuf>,
    observer: &dyn Observer,
) -> Result<(), RebuildErrorKind> {
    let file = File::options().read(true).write(true).open(path).doing("opening the damaged database")?;
    let identity = FileIdentity::from(&file.metadata().doing("looking at the database")?);
    let lease = WriteLease::take(identity).map_err(|reason| match reason {
        LeaseRefused::OpenElsewhere => RebuildErrorKind::InUse { holders: Named(Vec::new()) },
        reason @ (LeaseRefused::OwnDescriptors(_) | LeaseRefused::Unavailable(_)) => {
            RebuildErrorKind::NoLease { reason }
        }
    })?;
    let aside = match kept {
        Some(kept) => kept.clone(),
        None => kept_name(path)?,
    };
    set_aside(path, &aside)?;
    observer.reached(STEPS[1]);
    if !lease.is_whole() {
        return Err(RebuildErrorKind::InUse { holders: Named(Vec::new()) });
    }
    new.let_go();
    rustix::fs::renameat_with(CWD, new.path(), CWD, path, RenameFlags::EXCHANGE)
        .doing("exchanging the names")?;
    let old = new.keep();
    observer.reached(Step::Exchanged.name());
    place::sync_folder(path).doing("putting the folder on the disk")?;
    if let Some(kept) = kept {
        fs::rename(&old, kept).doing("keeping the old database")?;
    } else {
        fs::remove_file(&old).doing("removing the old database")?;
        for suffix in ["-wal", "-journal"] {
            let _absent = fs::remove_file(beside(&aside, suffix));
        }
    }
    observer.reached(Step::Retired.name());
    lease.release();
    Ok(())
}

#[cfg(test)]
mod tests;
