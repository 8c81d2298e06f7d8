//! A sample database to try every command on: invented conversations in both layouts, a few mebibytes, the same for the same instant.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use headwater_model::{ByteCount, DAY_MS, UnixMillis};
use rusqlite::{Connection, OpenFlags, Transaction};
use rustix::fs::{CWD, RenameFlags};
use serde::Serialize;

use crate::backup::is_taken;
use crate::rebuild::temporary::{TemporaryFile, sweep_marked};
use values::Maker;

mod story;
mod v1;
mod v2;
mod values;

/// In the name of a database that is being made.
const MARK: &str = ".making-";

/// What [`create`] made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Demo {
    /// The database.
    pub database: PathBuf,
    /// Its size.
    pub bytes: ByteCount,
    /// Sessions in it; one that exists in both layouts counts once.
    pub sessions: u64,
}

/// Why no sample database was made. Files that were there before are as they were.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a sample database in {}: {kind}", .dir.display())]
pub struct DemoError {
    /// The folder as given.
    pub dir: PathBuf,
    /// What is in the way.
    #[source]
    pub kind: DemoErrorKind,
}

/// What is in the way of a sample database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoErrorKind {
    /// The folder has an `opencode.db` or its log.
    #[error("there is a database already")]
    Exists,
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// SQLite refused.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Makes `dir/opencode.db`, and `dir` where it does not exist. The newest session was used an hour before `now`.
///
/// # Errors
/// [`DemoError`] where there is a database already, or the file system or SQLite refuse.
pub fn create(dir: &Path, now: UnixMillis) -> Result<Demo, DemoError> {
    try_create(dir, now).map_err(|kind| DemoError { dir: dir.to_owned(), kind })
}

fn try_create(dir: &Path, now: UnixMillis) -> Result<Demo, DemoErrorKind> {
    let is_new = !dir.exists();
    fs::create_dir_all(dir)?;
    let dir = fs::canonicalize(dir)?;
    let made = make(&dir, now);
    if made.is_err() && is_new {
        // Succeeds only where nothing is in it.
        let _others_files = fs::remove_dir(&dir);
    }
    made
}

/// Writes the database under another name: under its own it is whole from the first moment.
fn make(dir: &Path, now: UnixMillis) -> Result<Demo, DemoErrorKind> {
    let database = dir.join("opencode.db");
    for suffix in ["", "-wal", "-shm", "-journal"] {
        if is_taken(&dir.join(format!("opencode.db{suffix}")))? {
            return Err(DemoErrorKind::Exists);
        }
    }
    sweep_marked(&database, MARK)?;
    let new = TemporaryFile::create_marked(&database, MARK)?;
    fs::set_permissions(new.path(), fs::Permissions::from_mode(0o644))?;
    let sessions = fill(new.path(), now)?;
    let bytes = fs::metadata(new.path())?.len();
    write_files_beside(dir)?;
    match rustix::fs::renameat_with(CWD, new.path(), CWD, &database, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::EXIST) => return Err(DemoErrorKind::Exists),
        named => named.map_err(io::Error::from)?,
    }
    drop(new.keep());
    Ok(Demo { database, bytes: ByteCount::new(bytes), sessions })
}

fn fill(database: &Path, now: UnixMillis) -> Result<u64, DemoErrorKind> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the opening rules are for files that exist; this one is empty"
    )]
    let mut connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "off")?;
    connection.pragma_update(None, "page_size", 4096)?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(include_str!("demo/schema.sql"))?;
    let sessions = write_stories(&transaction, now)?;
    transaction.commit()?;
    // As OpenCode leaves it. Closing the only connection removes the log again.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(sessions)
}

fn write_stories(db: &Transaction<'_>, now: UnixMillis) -> rusqlite::Result<u64> {
    let mut insert = db.prepare(
        "INSERT INTO project (id, worktree, vcs, time_created, time_updated, time_active, sandboxes) \
         VALUES (?1, ?2, 'git', ?3, ?3, ?3, '[]')",
    )?;
    for project in story::PROJECTS {
        insert.execute((project.id, project.directory, now.minus_ms(250 * DAY_MS).get()))?;
    }
    let mut ids: Vec<String> = Vec::new();
    for (place, story) in story::STORIES.iter().enumerate() {
        let start =
            now.minus_ms(story.used_days_ago * DAY_MS + (i64::try_from(place).unwrap_or(0) + 1) * 3_600_000);
        let mut maker = Maker::new(place as u64, start.minus_ms(600_000));
        let id = maker.id("ses");
        let parent = story.parent.map(|parent| ids[parent].clone());
        let session = story::Session { id: &id, parent: parent.as_deref(), story, start };
        if story.layout.has_v1() {
            v1::write(db, &session, &mut maker)?;
        }
        if story.layout.has_v2() {
            v2::write(db, &session, &mut maker)?;
        }
        ids.push(id);
    }
    Ok(ids.len() as u64)
}

/// What OpenCode keeps in its data folder besides the database, so that `stats` has something to list there.
fn write_files_beside(dir: &Path) -> io::Result<()> {
    let mut maker = Maker::new(u64::MAX, UnixMillis::new(1_790_000_000_000));
    for (folder, name, bytes) in [
        ("tool-output", "tool_0001", 96 * 1024),
        ("tool-output", "tool_0002", 61 * 1024),
        ("log", "opencode.log", 24 * 1024),
    ] {
        fs::create_dir_all(dir.join(folder))?;
        match File::create_new(dir.join(folder).join(name)) {
            Ok(mut file) => io::Write::write_all(&mut file, maker.output(bytes).as_bytes())?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadDatabase;

    const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);

    #[test]
    fn the_sample_is_a_whole_database_of_both_layouts_without_side_files() {
        let dir = tempfile::tempdir().unwrap();
        let demo = create(&dir.path().join("new folder"), NOW).unwrap();
        assert!((2 << 20..12 << 20).contains(&demo.bytes.get()), "{} bytes", demo.bytes);
        let database = ReadDatabase::open(&demo.database).unwrap();
        assert!(database.file().is_wal() && database.schema().layouts().v1 && database.schema().layouts().v2);
        let answer =
            |sql: &str| database.connection().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(answer("SELECT count(*) FROM pragma_foreign_key_check"), 0);
        assert_eq!(answer("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
        let sessions = "SELECT count(*) FROM (SELECT id FROM session UNION SELECT id FROM session_v2)";
        assert_eq!(answer(sessions), i64::try_from(demo.sessions).unwrap());
        for table in ["part", "message", "event", "session_message"] {
            let invalid = format!("SELECT count(*) FROM {table} WHERE NOT json_valid(data)");
            assert_eq!(answer(&invalid), 0, "{table}");
        }
        assert_eq!(answer("SELECT max(time_updated) FROM session"), NOW.minus_ms(3_600_000).get());
        let names = |suffix: &str| demo.database.with_file_name(format!("opencode.db{suffix}"));
        assert!(!names("-wal").exists() && !names("-shm").exists());
    }

    #[test]
    fn the_same_instant_gives_the_same_bytes() {
        let bytes = [0, 1].map(|_| {
            let dir = tempfile::tempdir().unwrap();
            fs::read(create(dir.path(), NOW).unwrap().database).unwrap()
        });
        assert!(bytes[0] == bytes[1]);
    }

    #[test]
    fn what_a_killed_run_left_is_no_database_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("opencode.db.making-1-0.tmp"), "half").unwrap();
        create(dir.path(), NOW).unwrap();
        assert!(!dir.path().join("opencode.db.making-1-0.tmp").exists());
    }

    #[test]
    fn an_existing_database_or_log_is_left_alone() {
        for name in ["opencode.db", "opencode.db-wal"] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(name), "mine").unwrap();
            let error = create(dir.path(), NOW).unwrap_err();
            assert!(matches!(error.kind, DemoErrorKind::Exists), "{error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
            assert_eq!(fs::read(dir.path().join(name)).unwrap(), b"mine");
        }
    }
}
