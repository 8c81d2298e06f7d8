//! A snapshot of a database, also of one in use (P17), verified on the very bytes that are handed out.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use rustix::fs::{CWD, RenameFlags};
use serde::Serialize;

use crate::observer::Observer;
use crate::open::is_of_database;
use crate::rebuild::error::Doing;
use crate::rebuild::shape::{TableShape, entries};
use crate::rebuild::temporary::{TemporaryFile, sweep_marked};
use crate::rebuild::watch::stoppable;
use crate::rebuild::{RebuildError, RebuildErrorKind, connect, pages, place, verify};
use crate::{Content, DatabaseFile, OpenError, ReadDatabase};

/// In the name of a snapshot that is being written: what lies under it is never more than a copy.
const MARK: &str = ".snapshot-";

/// Steps of a backup, as `observer.reached` gives them.
pub const STEPS: [&str; 4] = ["copied", "synced", "verified", "named"];

/// How a backup is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupOptions {
    /// Whether a file at the destination may be replaced.
    pub overwrite: bool,
    /// What the database must hold.
    pub content: Content,
}

/// What a backup did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// The database, symlinks resolved.
    pub path: PathBuf,
    /// The snapshot: one file without a log.
    pub destination: PathBuf,
    /// Its bytes.
    pub bytes: ByteCount,
    /// Tables whose rows were compared with the source.
    pub tables: u64,
    /// Rows that were compared.
    pub rows: u64,
    /// Unfinished snapshots of killed runs to the same destination, which are removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<PathBuf>,
}

/// Writes a snapshot of the database at `path` to `destination`. The database may be in use and is not changed; what was committed
/// when the backup began is in it, whole.
///
/// # Errors
/// [`RebuildError`]; then nothing new is at `destination`, and what was there is as it was.
pub fn run(
    path: &Path,
    destination: &Path,
    options: BackupOptions,
    observer: &dyn Observer,
) -> Result<BackupReport, RebuildError> {
    backup(path, destination, options, observer).map_err(|kind| kind.at(path))
}

fn backup(
    path: &Path,
    destination: &Path,
    options: BackupOptions,
    observer: &dyn Observer,
) -> Result<BackupReport, RebuildErrorKind> {
    ensure_free(path, destination, options)?;
    let swept = sweep_marked(destination, MARK).doing("looking for files of earlier runs")?;
    let (source, new, snapshot) =
        open_and_copy(path, options.content, observer, || TemporaryFile::create_marked(destination, MARK))?;
    let mode = fs::metadata(source.path()).doing("looking at the database")?.mode() & 0o777;
    fs::set_permissions(new.path(), Permissions::from_mode(mode)).doing("keeping the mode")?;
    observer.reached(STEPS[2]);
    let bytes = fs::metadata(new.path()).doing("looking at the snapshot")?.len();
    name(new, destination, options)?;
    place::sync_folder(destination).doing("putting the folder on the disk")?;
    observer.reached(STEPS[3]);
    Ok(BackupReport {
        path: source.path().to_owned(),
        destination: destination.to_owned(),
        bytes: ByteCount::new(bytes),
        tables: snapshot.tables,
        rows: snapshot.rows,
        swept,
    })
}

/// Opens the database at `path` and copies it into the file that `create` makes. Where it was read without locks, a program that
/// wrote meanwhile is the reason of whatever else went wrong: a torn reading looks like damage.
pub(crate) fn open_and_copy(
    path: &Path,
    content: Content,
    observer: &dyn Observer,
    create: impl FnOnce() -> io::Result<TemporaryFile>,
) -> Result<(DatabaseFile, TemporaryFile, Snapshot), RebuildErrorKind> {
    let opened = |error: OpenError| RebuildErrorKind::Open(error.kind);
    let source = ReadDatabase::open_holding(path, content).map_err(opened)?;
    let new = create().doing("creating the new file")?;
    let outcome = snapshot(source.connection(), &new, observer);
    let file = source.file().clone();
    source.finish().map_err(opened)?;
    Ok((file, new, outcome?))
}

/// A log or journal of an earlier file under this name would be read into the snapshot.
///
/// Whatever may be replaced, it is neither the database nor anything but a file.
fn ensure_free(path: &Path, destination: &Path, options: BackupOptions) -> Result<(), RebuildErrorKind> {
    let is_file = fs::metadata(destination).map_or(true, |found| found.is_file());
    if is_of_database(path, destination) || !is_file {
        return Err(RebuildErrorKind::Exists(destination.to_owned()));
    }
    let mut names = vec![];
    if !options.overwrite {
        names.push(destination.to_owned());
    }
    for suffix in ["-wal", "-journal"] {
        let mut name = destination.as_os_str().to_owned();
        name.push(suffix);
        names.push(name.into());
    }
    names
        .into_iter()
        .find(|name| fs::symlink_metadata(name).is_ok())
        .map_or(Ok(()), |name| Err(RebuildErrorKind::Exists(name)))
}

fn name(new: TemporaryFile, destination: &Path, options: BackupOptions) -> Result<(), RebuildErrorKind> {
    let flags = if options.overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    match rustix::fs::renameat_with(CWD, new.path(), CWD, destination, flags) {
        Err(rustix::io::Errno::EXIST) => return Err(RebuildErrorKind::Exists(destination.to_owned())),
        result => result.doing("naming the snapshot")?,
    }
    drop(new.keep());
    Ok(())
}

/// What a verified snapshot holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    pub(crate) tables: u64,
    pub(crate) rows: u64,
}

/// Copies what `source` sees at this moment into `new`, syncs it, and compares it row by row.
fn snapshot(
    source: &Connection,
    new: &TemporaryFile,
    observer: &dyn Observer,
) -> Result<Snapshot, RebuildErrorKind> {
    // One read transaction: the copy is of one instant and never begins anew, whoever writes meanwhile.
    source.execute_batch("BEGIN").doing("beginning to read")?;
    let outcome = copy(source, new, observer).and_then(|()| {
        File::open(new.path()).and_then(|file| file.sync_all()).doing("putting the snapshot on the disk")?;
        observer.reached(STEPS[1]);
        compare(source, new.path(), observer)
    });
    let ended = source.execute_batch("ROLLBACK").doing("ending to read");
    let snapshot = outcome?;
    ended.map(|()| snapshot)
}

fn copy(source: &Connection, new: &TemporaryFile, observer: &dyn Observer) -> Result<(), RebuildErrorKind> {
    // Takes the snapshot: BEGIN alone reads nothing.
    source
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
        .doing("beginning to read")?;
    let mut target = connect::private(new.path()).doing("opening the snapshot")?;
    let backup = Backup::new(source, &mut target).doing("copying")?;
    let busy = || RebuildErrorKind::Open(crate::OpenErrorKind::Busy);
    pages::copy_all(&backup, ("copying pages", "copying"), busy, observer)?;
    drop(backup);
    target.close().map_err(|(_, error)| error).doing("closing the snapshot")?;
    observer.reached(STEPS[0]);
    Ok(())
}

/// Checks the file at `path` by itself and compares each of its rows with `source`.
fn compare(source: &Connection, path: &Path, observer: &dyn Observer) -> Result<Snapshot, RebuildErrorKind> {
    let new = connect::resting(path).doing("opening the snapshot")?;
    stoppable(observer, &[source.get_interrupt_handle(), new.get_interrupt_handle()], || {
        if !verify::is_intact(&new).doing("checking the snapshot")? {
            // Page for page a copy: its damage is the damage of the database.
            let is_intact = verify::is_intact(source).doing("checking the database")?;
            return Err(if is_intact {
                RebuildErrorKind::Verification("the snapshot fails integrity_check".into())
            } else {
                RebuildErrorKind::Damaged
            });
        }
        let mut found = Snapshot { tables: 0, rows: 0 };
        for entry in entries(source)?.iter().filter(|entry| entry.is_table_with_pages()) {
            let shape = TableShape::read(source, &entry.name)?;
            let digest = verify::digest_of(&new, &shape)?;
            if digest != verify::digest_of(source, &shape)? {
                return Err(RebuildErrorKind::Verification(format!(
                    "the rows of table {} differ",
                    entry.name
                )));
            }
            found.tables += 1;
            found.rows += digest.rows;
        }
        Ok(found)
    })
}

/// Whether anything is at `path`, a broken link included.
pub(crate) fn is_taken(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::OpenErrorKind;
    use crate::fixture::{self, Folder, OtherProcess, v1_session};
    use crate::observer::{Progress, Unobserved};

    fn sample() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        fixture::database(&path, &v1_session("ses_a"));
        let destination = folder.path().join("snapshot.db");
        (folder, path, destination)
    }

    fn sessions(path: &Path) -> i64 {
        let db = fixture::connect(path);
        db.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn rows_in_the_log_of_a_running_server_are_in_the_snapshot_and_the_server_goes_on() {
        let (folder, path, destination) = sample();
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run(&v1_session("ses_b")), "ok");
        let log = fs::read(fixture::with_suffix(&path, "-wal")).unwrap();
        let report = run(&path, &destination, BackupOptions::default(), &Unobserved).unwrap();
        assert_eq!(fs::read(fixture::with_suffix(&path, "-wal")).unwrap(), log);
        assert_eq!(report.bytes.get(), fs::metadata(&destination).unwrap().len());
        assert_eq!(server.run(&v1_session("ses_c")), "ok");
        server.close();
        assert_eq!(sessions(&destination), 2);
        assert_eq!(sessions(&path), 3);
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db", "snapshot.db"]);
    }

    struct Committing(Mutex<Option<OtherProcess>>);

    impl Observer for Committing {
        fn reached(&self, step: &'static str) {
            if step == STEPS[0]
                && let Some(server) = self.0.lock().unwrap().as_mut()
            {
                assert_eq!(server.run(&v1_session("ses_meanwhile")), "ok");
            }
        }
    }

    #[test]
    fn what_is_committed_meanwhile_is_not_in_the_snapshot() {
        let (_folder, path, destination) = sample();
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run("SELECT count(*) FROM session"), "ok");
        let observer = Committing(Mutex::new(Some(server)));
        run(&path, &destination, BackupOptions::default(), &observer).unwrap();
        assert_eq!((sessions(&destination), sessions(&path)), (1, 2));
    }

    #[test]
    fn a_file_at_the_destination_stays_unless_it_may_be_replaced() {
        let (folder, path, destination) = sample();
        fs::write(&destination, b"precious").unwrap();
        let before = Folder::of(folder.path());
        let refused = run(&path, &destination, BackupOptions::default(), &Unobserved).unwrap_err();
        assert!(
            matches!(&refused.kind, RebuildErrorKind::Exists(found) if *found == destination),
            "{refused}"
        );
        assert_eq!(Folder::of(folder.path()), before);
        run(&path, &destination, BackupOptions { overwrite: true, ..BackupOptions::default() }, &Unobserved)
            .unwrap();
        assert_eq!(sessions(&destination), 1);
        fs::write(fixture::with_suffix(&destination, "-wal"), b"an old log").unwrap();
        let refused = run(
            &path,
            &destination,
            BackupOptions { overwrite: true, ..BackupOptions::default() },
            &Unobserved,
        )
        .unwrap_err();
        assert!(matches!(refused.kind, RebuildErrorKind::Exists(_)), "{refused}");
    }

    struct Corrupting(PathBuf);

    impl Observer for Corrupting {
        fn reached(&self, step: &'static str) {
            if step == STEPS[1] {
                let file = crate::rebuild::temporary::leftovers_marked(&self.0, MARK).unwrap().remove(0);
                let bytes = fs::read(&file).unwrap();
                let at = bytes.windows(10).position(|found| found == b"hello from").unwrap();
                File::options().write(true).open(&file).unwrap().write_all_at(b"j", at as u64).unwrap();
            }
        }
    }

    #[test]
    fn a_snapshot_that_differs_by_a_byte_is_not_handed_out() {
        let (folder, path, destination) = sample();
        let refused =
            run(&path, &destination, BackupOptions::default(), &Corrupting(destination.clone())).unwrap_err();
        assert!(
            matches!(&refused.kind, RebuildErrorKind::Verification(what) if what.contains("part")),
            "{refused}"
        );
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db"]);
    }

    #[test]
    fn a_damaged_database_is_called_damaged() {
        let (folder, path, destination) = sample();
        fixture::share_pages(&path);
        let before = Folder::of(folder.path());
        let refused = run(&path, &destination, BackupOptions::default(), &Unobserved).unwrap_err();
        assert!(matches!(refused.kind, RebuildErrorKind::Damaged), "{refused}");
        assert_eq!(Folder::of(folder.path()), before);
    }

    /// Writes garbage over the database while it is read without locks, as a checkpoint by another program looks.
    struct Tearing(PathBuf);

    impl Observer for Tearing {
        fn progress(&self, _: Progress) {
            let file = File::options().write(true).open(&self.0).unwrap();
            file.write_all_at(&[0x5a; 4096], 4096).unwrap();
        }
    }

    #[test]
    fn a_database_that_changes_under_the_copy_is_not_called_damaged() {
        let (folder, path, destination) = sample();
        let refused = run(&path, &destination, BackupOptions::default(), &Tearing(path.clone())).unwrap_err();
        assert!(
            matches!(refused.kind, RebuildErrorKind::Open(OpenErrorKind::ChangedWhileReading)),
            "{refused}"
        );
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db"]);
    }

    struct StoppingAt(&'static str, AtomicBool);

    impl Observer for StoppingAt {
        fn reached(&self, step: &'static str) {
            if step == self.0 {
                self.1.store(true, Ordering::Relaxed);
            }
        }

        fn is_cancelled(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_backup_that_is_stopped_while_it_compares_leaves_nothing() {
        let (folder, path, destination) = sample();
        let db = fixture::connect(&path);
        // Long enough to be met while it is read.
        db.execute_batch(
            "CREATE TABLE ballast (x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
             INSERT INTO ballast SELECT i FROM n;",
        )
        .unwrap();
        db.close().unwrap();
        let observer = StoppingAt(STEPS[1], AtomicBool::new(false));
        let refused = run(&path, &destination, BackupOptions::default(), &observer).unwrap_err();
        assert!(matches!(refused.kind, RebuildErrorKind::Cancelled), "{refused}");
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db"]);
    }

    #[test]
    fn what_a_killed_backup_left_is_swept_by_the_next_one() {
        let (folder, path, destination) = sample();
        let left = folder.path().join("snapshot.db.snapshot-1-0.tmp");
        fs::write(&left, b"half").unwrap();
        let report = run(&path, &destination, BackupOptions::default(), &Unobserved).unwrap();
        assert_eq!(report.swept, [left]);
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db", "snapshot.db"]);
    }
}
