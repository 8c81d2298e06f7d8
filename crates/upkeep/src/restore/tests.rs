//! Restores that end, and restores that are killed at each step.

use super::*;
use crate::backup::{self, BackupOptions};
use crate::fixture::paused::{Paused, Pausing};
use crate::fixture::{self, Folder, OtherProcess, v1_session, with_suffix};
use crate::observer::Unobserved;

/// A database, and a snapshot of it from before its second session.
fn sample() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let from = folder.path().join("snapshot.db");
    fixture::database(&path, &v1_session("ses_a"));
    backup::run(&path, &from, BackupOptions::default(), &Unobserved).unwrap();
    fixture::connect(&path).execute_batch(&v1_session("ses_b")).unwrap();
    (folder, path, from)
}

fn sessions(path: &Path) -> Vec<String> {
    let db = fixture::connect(path);
    let mut statement = db.prepare("SELECT id FROM session ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn the_snapshot_takes_the_place_and_the_previous_database_is_kept_with_its_log_merged() {
    let (folder, path, from) = sample();
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_log")), "ok");
    server.kill();
    let report = run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap();
    assert!(report.supersedes_receipts);
    assert_eq!(sessions(&path), ["ses_a"]);
    let kept = report.previous.unwrap();
    assert_eq!(kept, folder.path().join("opencode.db.before-restore-1"));
    assert_eq!(sessions(&kept), ["ses_a", "ses_b", "ses_log"]);
    let names = ["opencode.db", "opencode.db.before-restore-1", "snapshot.db"];
    assert_eq!(Folder::of(folder.path()).names(), names);
    let report =
        run(&path, &from, RestoreOptions { forget_previous: true, ..RestoreOptions::default() }, &Unobserved)
            .unwrap();
    assert_eq!(report.previous, None);
    assert_eq!(Folder::of(folder.path()).names(), names);
}

#[test]
fn a_database_in_use_is_left_alone() {
    for statement in ["PRAGMA busy_timeout = 0", "SELECT count(*) FROM session"] {
        let (folder, path, from) = sample();
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run(statement), "ok");
        let refused = run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap_err();
        assert!(matches!(refused.kind, RebuildErrorKind::InUse { .. }), "{refused}");
        assert_eq!(server.run(&v1_session("ses_c")), "ok");
        server.close();
        assert_eq!(sessions(&path), ["ses_a", "ses_b", "ses_c"]);
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db", "snapshot.db"]);
    }
}

#[test]
fn a_database_beyond_recognition_is_replaced_with_its_log() {
    for content in [&b""[..], b"this is no database at all, only some text that is long enough to have a header of a hundred bytes....."] {
        let (folder, path, from) = sample();
        fs::write(&path, content).unwrap();
        fs::write(with_suffix(&path, "-wal"), b"frames").unwrap();
        let report = run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap();
        assert_eq!(sessions(&path), ["ses_a"]);
        let kept = report.previous.unwrap();
        assert_eq!(fs::read(&kept).unwrap(), content);
        assert_eq!(fs::read(with_suffix(&kept, "-wal")).unwrap(), b"frames");
        assert_eq!(Folder::of(folder.path()).names().len(), 4);
    }
}

#[test]
fn a_database_that_is_gone_comes_back_without_the_log_that_was_left() {
    let (_folder, path, from) = sample();
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_log")), "ok");
    server.kill();
    fs::remove_file(&path).unwrap();
    let report = run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap();
    assert_eq!(report.previous, None);
    assert_eq!(sessions(&path), ["ses_a"]);
}

#[test]
fn a_snapshot_that_is_damaged_or_the_database_itself_changes_nothing() {
    let (folder, path, from) = sample();
    let refused = run(&path, &path, RestoreOptions::default(), &Unobserved).unwrap_err();
    assert!(matches!(refused.kind, RebuildErrorKind::Unsupported(_)), "{refused}");
    let bytes = fs::read(&from).unwrap();
    fs::write(&from, &bytes[..bytes.len() / 2]).unwrap();
    let before = Folder::of(folder.path());
    assert!(run(&path, &from, RestoreOptions::default(), &Unobserved).is_err());
    assert_eq!(Folder::of(folder.path()), before);
}

#[test]
fn damage_of_the_snapshot_is_not_told_of_the_database() {
    let (folder, path, from) = sample();
    fixture::share_pages(&from);
    let before = Folder::of(folder.path());
    let refused = run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap_err();
    assert!(matches!(refused.kind, RebuildErrorKind::Damaged), "{refused}");
    assert_eq!(refused.path, from);
    assert_eq!(Folder::of(folder.path()), before);
    fs::remove_file(&from).unwrap();
    let refused = run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap_err();
    assert!(matches!(refused.kind, RebuildErrorKind::Open(OpenErrorKind::NotFound)), "{refused}");
    assert_eq!(refused.path, from);
}

/// Kills a restore at `step` and looks at what is there, then lets the next one run.
fn killed_at(step: &str, path: &Path, from: &Path) {
    Paused::start("restore::tests::entry", &[(DATABASE, path), (SNAPSHOT, from)], step).kill();
}

const DATABASE: &str = "HEADWATER_TEST_RESTORE";
const SNAPSHOT: &str = "HEADWATER_TEST_SNAPSHOT";

#[test]
fn entry() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let from = std::env::var_os(SNAPSHOT).unwrap();
    let outcome =
        run(Path::new(&path), Path::new(&from), RestoreOptions::default(), &Pausing::from_environment());
    println!("said: ended {}", outcome.is_ok());
}

/// Every step of a restore onto a database that can be locked, in order, and whether the snapshot has taken the place by then.
const LOCKED: [(&str, bool); 10] = [
    (backup::STEPS[0], false),
    (backup::STEPS[1], false),
    (STEPS[0], false),
    ("checkpointed", false),
    ("leased", false),
    ("settled", false),
    ("exchanged", true),
    ("folder-synced", true),
    ("retired", true),
    (STEPS[2], true),
];

#[test]
fn killed_at_any_step_it_leaves_one_whole_database_and_the_next_restore_loses_nothing() {
    for (step, is_restored) in LOCKED {
        let (folder, path, from) = sample();
        killed_at(step, &path, &from);
        let wanted = if is_restored { &["ses_a"][..] } else { &["ses_a", "ses_b"] };
        assert_eq!(sessions(&path), wanted, "{step}");
        let report = run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap();
        assert_eq!(sessions(&path), ["ses_a"], "{step}");
        let names = Folder::of(folder.path()).names();
        let kept: Vec<_> = names.iter().filter(|name| name.contains(".before-restore-")).collect();
        // Nothing but databases is left, and the one with both sessions is among them.
        assert_eq!(names.len(), kept.len() + 2, "{step}: {names:?}");
        let both = kept.iter().filter(|name| sessions(&folder.path().join(name)).len() == 2).count();
        assert_eq!(both, 1, "{step}: {names:?}");
        let was_unnamed = ["exchanged", "folder-synced"].contains(&step);
        assert_eq!(report.recovered.len(), usize::from(was_unnamed), "{step}");
        assert_eq!(report.swept.len(), usize::from(!is_restored), "{step}");
    }
}

#[test]
fn killed_over_a_damaged_file_it_keeps_that_file_and_its_log() {
    for step in [STEPS[1], "exchanged", "retired"] {
        let (folder, path, from) = sample();
        fs::write(&path, b"no database").unwrap();
        fs::write(with_suffix(&path, "-wal"), b"frames").unwrap();
        killed_at(step, &path, &from);
        run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap();
        assert_eq!(sessions(&path), ["ses_a"], "{step}");
        let contents: Vec<_> = Folder::of(folder.path())
            .names()
            .iter()
            .map(|name| fs::read(folder.path().join(name)).unwrap())
            .collect();
        for kept in [&b"no database"[..], b"frames"] {
            assert_eq!(contents.iter().filter(|found| *found == kept).count(), 1, "{step}");
        }
        assert!(!Folder::of(folder.path()).names().iter().any(|name| name.contains(".tmp")), "{step}");
    }
}

#[test]
fn a_rebuild_sweeps_what_a_killed_restore_left_unfinished() {
    let (folder, path, from) = sample();
    killed_at(STEPS[0], &path, &from);
    assert_eq!(Folder::of(folder.path()).names().len(), 3);
    let options = crate::rebuild::RebuildOptions { force: true, ..Default::default() };
    let report = crate::rebuild::run(
        &path,
        &crate::plan::Selection::new([].into_iter().collect(), headwater_model::UnixMillis::new(0)),
        &options,
        &Unobserved,
    )
    .unwrap();
    assert_eq!(report.swept.len(), 1);
    assert_eq!(Folder::of(folder.path()).names(), ["opencode.db", "snapshot.db"]);
}

#[test]
fn the_file_of_a_restore_under_way_is_not_swept() {
    let (folder, path, from) = sample();
    let paused = Paused::start("restore::tests::entry", &[(DATABASE, &path), (SNAPSHOT, &from)], STEPS[0]);
    run(&path, &from, RestoreOptions::default(), &Unobserved).unwrap();
    assert_eq!(paused.finish(), "ended true");
    let names =
        ["opencode.db", "opencode.db.before-restore-1", "opencode.db.before-restore-2", "snapshot.db"];
    assert_eq!(Folder::of(folder.path()).names(), names);
}
