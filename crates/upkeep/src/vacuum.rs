//! SQLite's own ways of giving free pages back, offline (P10, P17). What came free is measured from the file, not from what was asked for.

use std::fs;
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use serde::Serialize;

use crate::DatabaseFile;
use crate::observer::Observer;
use crate::rebuild::error::Doing;
use crate::rebuild::exclusive::ExclusiveDatabase;
use crate::rebuild::watch::stoppable;
use crate::rebuild::{RebuildError, RebuildErrorKind, place};

/// How a vacuum is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumOptions {
    /// Rewrite also where no page is free.
    pub force: bool,
    /// Only cut free pages off (`PRAGMA incremental_vacuum`), which needs a file that was made for it.
    pub incremental: bool,
}

/// How a file keeps track of its pages, decided when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutoVacuum {
    /// Free pages stay in the file until it is rewritten whole. OpenCode's files are so (fact A1).
    None,
    /// Each commit gives its free pages back.
    Full,
    /// Free pages are given back on demand.
    Incremental,
}

/// Why an incremental vacuum freed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NothingFreed {
    /// The file has `auto_vacuum=0`: the pragma runs without an error and does nothing. Only a full rewrite helps.
    AutoVacuumOff,
    /// Page for page the file is full of rows: only pruning helps.
    NoFreePage,
}

/// What a vacuum did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VacuumReport {
    /// The database, symlinks resolved.
    pub path: PathBuf,
    /// Bytes of the file before, with its log merged.
    pub bytes_before: ByteCount,
    /// Bytes of the file after, with its log merged.
    pub bytes_after: ByteCount,
    /// Bytes that the file really lost.
    pub bytes_freed: ByteCount,
    /// Bytes of free pages before.
    pub free_page_bytes: ByteCount,
    /// How the file keeps track of its pages.
    pub auto_vacuum: AutoVacuum,
    /// Why nothing came free, where nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nothing_freed: Option<NothingFreed>,
    /// Bytes that the log grew by on the way.
    pub log_growth: ByteCount,
    /// Milliseconds for which the database was locked.
    pub locked_ms: u64,
}

/// Steps of a vacuum, as `observer.reached` gives them.
pub const STEPS: [&str; 3] = ["locked", "vacuumed", "log-merged"];

/// Vacuums the database at `path`. Nobody may have it open.
///
/// # Errors
/// [`RebuildError`]: open elsewhere, nothing to gain, no room, damaged. SQLite's journal restores the old content after a crash.
pub fn run(
    path: &Path,
    options: VacuumOptions,
    observer: &dyn Observer,
) -> Result<VacuumReport, RebuildError> {
    let vacuum = || {
        let file = DatabaseFile::find(path).map_err(|error| RebuildErrorKind::Open(error.kind))?;
        place::ensure_rewritable(&file)?;
        let locked = ExclusiveDatabase::lock(file)?;
        observer.reached(STEPS[0]);
        let report = vacuum_locked(&locked, options, observer);
        locked.release();
        report
    };
    vacuum().map_err(|kind| kind.at(path))
}

fn vacuum_locked(
    locked: &ExclusiveDatabase,
    options: VacuumOptions,
    observer: &dyn Observer,
) -> Result<VacuumReport, RebuildErrorKind> {
    locked.schema()?;
    let db = locked.connection();
    let pragma = |name: &str| {
        db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, u32>(0))
            .map(u64::from)
            .doing("counting pages")
    };
    let (page_bytes, pages, free) = (pragma("page_size")?, pragma("page_count")?, pragma("freelist_count")?);
    let auto_vacuum = match pragma("auto_vacuum")? {
        0 => AutoVacuum::None,
        1 => AutoVacuum::Full,
        _ => AutoVacuum::Incremental,
    };
    // With the log merged, which may hold more than the file.
    let bytes_before = file_bytes(locked)?.max(pages.saturating_mul(page_bytes));
    if options.incremental {
        stop_or_undo(locked, observer, || step_through(db, "PRAGMA incremental_vacuum"))?;
    } else {
        if free == 0 && !options.force {
            return Err(RebuildErrorKind::NothingToGain {
                free_bytes: 0,
                planned_bytes: 0,
                file_bytes: bytes_before,
            });
        }
        // A temporary copy of what is left, and the same again in the log.
        let needed_bytes = (pages - free).saturating_mul(page_bytes).saturating_mul(2);
        let free_bytes = place::free_bytes(locked.file().path())?;
        if needed_bytes > free_bytes {
            return Err(RebuildErrorKind::NoRoom { needed_bytes, free_bytes });
        }
        stop_or_undo(locked, observer, || db.execute_batch("VACUUM").doing("vacuuming"))?;
    }
    let log_growth = locked.log_growth();
    observer.reached(STEPS[1]);
    locked.merge_log()?;
    observer.reached(STEPS[2]);
    let bytes_after = file_bytes(locked)?;
    let nothing_freed = (bytes_after >= bytes_before).then_some(if free == 0 {
        NothingFreed::NoFreePage
    } else {
        NothingFreed::AutoVacuumOff
    });
    Ok(VacuumReport {
        path: locked.file().path().to_owned(),
        bytes_before: ByteCount::new(bytes_before),
        bytes_after: ByteCount::new(bytes_after),
        bytes_freed: ByteCount::new(bytes_before.saturating_sub(bytes_after)),
        free_page_bytes: ByteCount::new(free.saturating_mul(page_bytes)),
        auto_vacuum,
        nothing_freed,
        log_growth: ByteCount::new(log_growth),
        locked_ms: locked.held_ms(),
    })
}

/// Does `work`, which is one transaction, unless the caller wants to stop. One that failed leaves frames without a commit in the log:
/// where the log was empty before, it is emptied again.
fn stop_or_undo(
    locked: &ExclusiveDatabase,
    observer: &dyn Observer,
    work: impl FnOnce() -> Result<(), RebuildErrorKind>,
) -> Result<(), RebuildErrorKind> {
    let outcome = stoppable(observer, &[locked.connection().get_interrupt_handle()], work);
    if outcome.is_err() && !locked.had_log() {
        let _what_failed_first_is_told = locked.merge_log();
    }
    outcome
}

/// The size that the file has.
fn file_bytes(locked: &ExclusiveDatabase) -> Result<u64, RebuildErrorKind> {
    fs::metadata(locked.file().path()).map(|found| found.len()).doing("looking at the database")
}

/// `PRAGMA incremental_vacuum` frees one page for each row that is asked for.
fn step_through(db: &rusqlite::Connection, sql: &str) -> Result<(), RebuildErrorKind> {
    let mut statement = db.prepare(sql).doing("vacuuming")?;
    let mut rows = statement.raw_query();
    while rows.next().doing("vacuuming")?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, Folder, OtherProcess, v1_session};
    use crate::observer::Unobserved;

    fn sample(auto_vacuum: u8) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        fixture::connect(&path).pragma_update(None, "auto_vacuum", auto_vacuum).unwrap();
        let db = fixture::connect(&path);
        db.execute_batch(&format!("PRAGMA auto_vacuum = {auto_vacuum}; VACUUM;")).unwrap();
        db.close().unwrap();
        fixture::database(&path, &v1_session("ses_a"));
        let db = fixture::connect(&path);
        db.execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO part SELECT 'prt_' || i, 'msg_ses_a', 'ses_a', 1, 1, printf('%.8000c', 'x') FROM n;
             DELETE FROM part WHERE id <> 'prt_ses_a' AND rowid > 20;",
        )
        .unwrap();
        db.close().unwrap();
        (folder, path)
    }

    #[test]
    fn free_pages_are_given_back_and_measured_from_the_file() {
        let (folder, path) = sample(0);
        let before = fs::metadata(&path).unwrap().len();
        let report = run(&path, VacuumOptions::default(), &Unobserved).unwrap();
        let after = fs::metadata(&path).unwrap().len();
        assert!(after < before / 4);
        assert_eq!(report.bytes_freed.get(), before - after);
        assert_eq!((report.auto_vacuum, report.nothing_freed), (AutoVacuum::None, None));
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db"]);
        let db = fixture::connect(&path);
        assert_eq!(db.query_row("SELECT count(*) FROM part", [], |row| row.get::<_, i64>(0)).unwrap(), 20);
    }

    #[test]
    fn pages_that_are_in_the_log_alone_count_as_freed() {
        let (_folder, path) = sample(0);
        run(&path, VacuumOptions::default(), &Unobserved).unwrap();
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run("PRAGMA wal_autocheckpoint = 0"), "ok");
        let ballast =
            "CREATE TABLE ballast (x); INSERT INTO ballast VALUES (zeroblob(900000)); DROP TABLE ballast";
        assert_eq!(server.run(ballast), "ok");
        server.kill();
        let report = run(&path, VacuumOptions::default(), &Unobserved).unwrap();
        assert!(report.bytes_freed.get() >= 900_000, "{report:?}");
        assert_eq!(report.nothing_freed, None);
    }

    #[test]
    fn an_incremental_vacuum_says_why_it_freed_nothing() {
        let (_folder, path) = sample(0);
        let before = fs::metadata(&path).unwrap().len();
        let options = VacuumOptions { incremental: true, ..VacuumOptions::default() };
        let report = run(&path, options, &Unobserved).unwrap();
        assert_eq!(report.bytes_freed, ByteCount::ZERO);
        assert!(report.free_page_bytes.get() > before / 2);
        assert_eq!(report.nothing_freed, Some(NothingFreed::AutoVacuumOff));
        assert_eq!(fs::metadata(&path).unwrap().len(), before);
    }

    #[test]
    fn an_incremental_vacuum_cuts_free_pages_off_where_the_file_allows_it() {
        let (_folder, path) = sample(2);
        let before = fs::metadata(&path).unwrap().len();
        let options = VacuumOptions { incremental: true, ..VacuumOptions::default() };
        let report = run(&path, options, &Unobserved).unwrap();
        assert_eq!((report.auto_vacuum, report.nothing_freed), (AutoVacuum::Incremental, None));
        assert_eq!(report.bytes_freed.get(), before - fs::metadata(&path).unwrap().len());
        assert!(report.bytes_freed.get() > before / 2);
    }

    #[test]
    fn a_full_file_is_left_alone_to_the_byte() {
        let (folder, path) = sample(0);
        run(&path, VacuumOptions::default(), &Unobserved).unwrap();
        let before = Folder::of(folder.path());
        let refused = run(&path, VacuumOptions::default(), &Unobserved).unwrap_err();
        assert!(matches!(refused.kind, RebuildErrorKind::NothingToGain { free_bytes: 0, .. }), "{refused}");
        assert_eq!(Folder::of(folder.path()), before);
    }

    #[test]
    fn a_reader_that_pins_the_log_is_named_and_nothing_is_written() {
        let (_folder, path) = sample(0);
        let mut reader = OtherProcess::open(&path);
        assert_eq!(reader.run("BEGIN"), "ok");
        assert_eq!(reader.run("SELECT count(*) FROM part"), "ok");
        let mut writer = OtherProcess::open(&path);
        assert_eq!(writer.run(&v1_session("ses_pinned")), "ok");
        let log = fs::metadata(fixture::with_suffix(&path, "-wal")).unwrap().len();
        let refused = run(&path, VacuumOptions::default(), &Unobserved).unwrap_err();
        let RebuildErrorKind::InUse { holders } = &refused.kind else { panic!("{refused}") };
        let mut pids = [reader.pid(), writer.pid()];
        pids.sort_unstable();
        assert_eq!(holders.0.iter().map(|holder| holder.pid).collect::<Vec<_>>(), pids);
        assert!(holders.0.iter().any(crate::holders::Holder::pins_log));
        assert_eq!(fs::metadata(fixture::with_suffix(&path, "-wal")).unwrap().len(), log);
        writer.close();
        reader.close();
        run(&path, VacuumOptions::default(), &Unobserved).unwrap();
    }

    struct Stopping;

    impl Observer for Stopping {
        fn is_cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_vacuum_that_is_stopped_leaves_the_file_as_it_was_and_no_log() {
        let (folder, path) = sample(0);
        let db = fixture::connect(&path);
        // Long enough to be met while it runs.
        db.execute_batch(
            "CREATE TABLE ballast (x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000)
             INSERT INTO ballast SELECT i FROM n;",
        )
        .unwrap();
        db.close().unwrap();
        let before = Folder::of(folder.path());
        let options = VacuumOptions { force: true, ..VacuumOptions::default() };
        let refused = run(&path, options, &Stopping).unwrap_err();
        assert!(matches!(refused.kind, RebuildErrorKind::Cancelled), "{refused}");
        assert_eq!(Folder::of(folder.path()), before);
    }
}
