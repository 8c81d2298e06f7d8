use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headwater_model::UnixMillis;
use headwater_testkit::fixture::{Fixture, Layout, NOW, Session, part};

use super::*;
use crate::WriteDatabase;
use crate::fence::{NoServers, Storage};
use crate::fixture::killed::Killed;
use crate::observer::Unobserved;
use crate::prune::testing::{
    STORAGES, build, dump, preview, prune, prune_into, receipt, receipts, request, state_path,
};
use crate::state::{DatabaseIdentity, StateFile};

fn undo(path: &Path, archive: &Path) -> Result<UndoReport, UndoError> {
    undo_with(path, archive, UndoOptions::default())
}

fn undo_with(path: &Path, archive: &Path, options: UndoOptions) -> Result<UndoReport, UndoError> {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    run(&database, &mut state, archive, &NoServers, options, UnixMillis::new(NOW + 60_000), &Unobserved)
}

/// The only reason why rows were left, with their number.
fn left(report: &UndoReport) -> Vec<(LeftAlone, u64)> {
    report.rows_left.iter().map(|(reason, rows)| (*reason, *rows)).collect()
}

struct Case {
    _folder: tempfile::TempDir,
    path: PathBuf,
    archive: PathBuf,
}

fn case(storage: Storage, layout: Layout) -> Case {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), storage, layout);
    let archive = folder.path().join("undo.zst");
    Case { _folder: folder, path, archive }
}

#[test]
fn two_prunes_of_a_message_are_undone_byte_for_byte() {
    for (storage, layout) in STORAGES {
        let case = case(storage, layout);
        let before = dump(&case.path);
        receipt(prune_into(&case.path, &request(&case.path, &[1]), &case.archive));
        receipt(prune_into(&case.path, &request(&case.path, &[0, 2]), &case.archive));
        assert_eq!((preview(&case.path).items.len(), receipts(&case.path)), (1, 2));
        let pruned = dump(&case.path);

        let report = undo(&case.path, &case.archive).unwrap();
        assert_eq!((report.units, report.units_restored), (2, 2), "{storage:?}");
        assert_eq!(dump(&case.path), before, "{storage:?}");
        assert_eq!(receipts(&case.path), 0);

        let again = undo(&case.path, &case.archive).unwrap();
        assert_eq!((again.units_restored, again.rows_restored), (0, 0));
        let rows = if storage == Storage::V1 { 3 } else { 2 };
        // A 2.x row has one state between the two prunes, and it is not the stored one.
        let reasons: u64 = again.rows_left.values().sum();
        assert_eq!(reasons, rows, "{storage:?}: {again:?}");
        assert_eq!(dump(&case.path), before);

        // What was undone can be pruned again, by the same request.
        receipt(prune(&case.path, &request(&case.path, &[1])));
        receipt(prune(&case.path, &request(&case.path, &[0, 2])));
        assert_eq!(dump(&case.path), pruned, "{storage:?}");
    }
}

#[test]
fn a_message_that_changed_since_stays_as_it_is() {
    for (storage, layout) in STORAGES {
        let case = case(storage, layout);
        receipt(prune_into(&case.path, &request(&case.path, &[0, 1]), &case.archive));
        let table = if storage == Storage::V1 { "part" } else { "session_message" };
        Fixture::reopen(&case.path)
            .sql(&format!("UPDATE {table} SET data = replace(data, 'answer', 'ANSWER')"));
        let before = dump(&case.path);
        let report = undo(&case.path, &case.archive).unwrap();
        let rows = if storage == Storage::V1 { 2 } else { 1 };
        assert_eq!(
            (report.rows_restored, left(&report)),
            (0, vec![(LeftAlone::Changed, rows)]),
            "{storage:?}"
        );
        assert_eq!(dump(&case.path), before);
        assert_eq!(receipts(&case.path), 1);
    }
}

#[test]
fn what_was_archived_and_then_refused_is_still_there() {
    for (storage, layout) in STORAGES {
        let case = case(storage, layout);
        let request = request(&case.path, &[0, 1]);
        Fixture::reopen(&case.path).sql(&format!("UPDATE {} SET revert = '{{}}'", storage.session_table()));
        prune_into(&case.path, &request, &case.archive);
        Fixture::reopen(&case.path).sql(&format!("UPDATE {} SET revert = NULL", storage.session_table()));
        let before = dump(&case.path);
        let report = undo(&case.path, &case.archive).unwrap();
        let rows = if storage == Storage::V1 { 2 } else { 1 };
        assert_eq!(left(&report), [(LeftAlone::StillThere, rows)], "{storage:?}");
        assert_eq!(dump(&case.path), before);
    }
}

#[test]
fn a_session_in_use_and_one_that_is_gone_are_left_alone() {
    for (storage, layout) in STORAGES {
        for (change, reason) in [("revert = '{}'", LeftAlone::InUse), ("directory = '/b'", LeftAlone::Moved)]
        {
            let case = case(storage, layout);
            receipt(prune_into(&case.path, &request(&case.path, &[0]), &case.archive));
            Fixture::reopen(&case.path).sql(&format!("UPDATE {} SET {change}", storage.session_table()));
            let report = undo(&case.path, &case.archive).unwrap();
            assert_eq!(left(&report), [(reason, 1)], "{storage:?} {change}");
        }
        let case = case(storage, layout);
        receipt(prune_into(&case.path, &request(&case.path, &[0]), &case.archive));
        Fixture::reopen(&case.path).sql(&format!("DELETE FROM {}", storage.session_table()));
        let report = undo(&case.path, &case.archive).unwrap();
        assert_eq!(left(&report), [(LeftAlone::ParentGone, 1)], "{storage:?}");
    }
}

/// An archive with two frames, and where each ends.
fn two_frames(case: &Case) -> (Vec<u8>, usize, usize) {
    receipt(prune_into(&case.path, &request(&case.path, &[1]), &case.archive));
    let first = fs::read(&case.archive).unwrap().len();
    receipt(prune_into(&case.path, &request(&case.path, &[0]), &case.archive));
    let bytes = fs::read(&case.archive).unwrap();
    let head = head_bytes(case);
    (bytes, head, first)
}

/// Length of the first frame: that of an archive without prunes.
fn head_bytes(case: &Case) -> usize {
    let empty = case.archive.with_file_name("empty.zst");
    drop(Archive::open(&empty, &identity(&case.path)).unwrap());
    fs::read(&empty).unwrap().len()
}

fn identity(path: &Path) -> DatabaseIdentity {
    let database = crate::ReadDatabase::open(path).unwrap();
    DatabaseIdentity::read(database.connection(), database.file()).unwrap()
}

#[test]
fn an_archive_that_was_cut_anywhere_is_refused_and_its_whole_frames_can_be_used() {
    let case = case(Storage::V1, Layout::V1);
    let (bytes, head, first) = two_frames(&case);
    let pruned = dump(&case.path);
    for cut in 0..bytes.len() {
        fs::write(&case.archive, &bytes[..cut]).unwrap();
        let outcome = ArchiveEnd::of(&case);
        let expected = if cut < head {
            ArchiveEnd::NotAnArchive
        } else if cut == head || cut == first {
            ArchiveEnd::Whole
        } else {
            ArchiveEnd::Torn { whole_frames: if cut < first { 1 } else { 2 } }
        };
        assert_eq!(outcome, expected, "cut at {cut} of {}", bytes.len());
    }
    assert_eq!(dump(&case.path), pruned);

    fs::write(&case.archive, &bytes[..bytes.len() - 1]).unwrap();
    let error = undo(&case.path, &case.archive).unwrap_err();
    assert!(error.to_string().contains("unfinished; the 2 frames before are whole"), "{error}");
    let options = UndoOptions { accept_torn: true, ..UndoOptions::default() };
    let report = undo_with(&case.path, &case.archive, options).unwrap();
    // The first prune is not the last change of the message, so its rows stay away.
    assert!(report.had_torn_end);
    assert_eq!((report.units, left(&report)), (1, vec![(LeftAlone::Changed, 1)]));

    // The next prune cuts the unfinished frame off and goes on.
    fs::write(&case.archive, &bytes[..bytes.len() - 1]).unwrap();
    receipt(prune_into(&case.path, &request(&case.path, &[1]), &case.archive));
    let report = undo(&case.path, &case.archive).unwrap();
    assert_eq!((report.units, report.units_restored), (2, 1));
}

/// How an archive is taken, without restoring.
#[derive(Debug, PartialEq, Eq)]
enum ArchiveEnd {
    NotAnArchive,
    Whole,
    Torn { whole_frames: u64 },
    Garbled,
    Other(String),
}

impl ArchiveEnd {
    fn of(case: &Case) -> Self {
        match reader::ArchiveReader::open(&case.archive, &identity(&case.path), false) {
            Ok(_) => Self::Whole,
            Err(ArchiveErrorKind::NotAnArchive) => Self::NotAnArchive,
            Err(ArchiveErrorKind::Torn { whole_frames, .. }) => Self::Torn { whole_frames },
            Err(ArchiveErrorKind::Garbled { .. }) => Self::Garbled,
            Err(other) => Self::Other(other.to_string()),
        }
    }
}

#[test]
fn an_archive_with_any_byte_changed_is_refused() {
    let case = case(Storage::V2, Layout::V2);
    let (bytes, _, _) = two_frames(&case);
    let pruned = dump(&case.path);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        fs::write(&case.archive, &changed).unwrap();
        // A descriptor of the compression may change without changing what comes out of it.
        if ArchiveEnd::of(&case) == ArchiveEnd::Whole {
            assert_eq!(plain(&changed), plain(&bytes), "byte {at} of {}", bytes.len());
        }
    }
    assert!(undo(&case.path, &case.archive).is_err());
    assert_eq!(dump(&case.path), pruned);
}

/// What any program makes of an archive.
fn plain(archive: &[u8]) -> Vec<u8> {
    zstd::decode_all(archive).unwrap()
}

#[test]
fn missing_exchanged_and_foreign_frames_are_refused() {
    let case = case(Storage::V1, Layout::V1);
    let (bytes, head, first) = two_frames(&case);
    let arrangements = [
        ("the first prune is missing", [&bytes[..head], &bytes[first..]].concat()),
        ("exchanged", [&bytes[..head], &bytes[first..], &bytes[head..first]].concat()),
        ("twice", [&bytes[..first], &bytes[head..first]].concat()),
        ("rubbish behind", [&bytes[..], b"rubbish"].concat()),
        ("zeros behind", [&bytes[..], &[0; 64]].concat()),
    ];
    for (name, arranged) in arrangements {
        fs::write(&case.archive, arranged).unwrap();
        assert_eq!(ArchiveEnd::of(&case), ArchiveEnd::Garbled, "{name}");
        let refused = Archive::open(&case.archive, &identity(&case.path));
        assert!(matches!(refused.unwrap_err().kind, ArchiveErrorKind::Garbled { .. }), "{name}");
    }
    fs::write(&case.archive, "this is a text and no archive").unwrap();
    assert_eq!(ArchiveEnd::of(&case), ArchiveEnd::NotAnArchive);
    fs::write(&case.archive, &bytes).unwrap();
    Fixture::reopen(&case.path).sql("UPDATE migration SET time_completed = time_completed + 1");
    assert_eq!(ArchiveEnd::of(&case), ArchiveEnd::Other("made from another database".to_owned()));
}

#[test]
fn every_storage_class_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let db = Fixture::create(folder.path().join("opencode.db"), Layout::V1);
    db.session(&Session::named("ses_a"));
    db.assistant("msg_a", "ses_a");
    db.part("prt_a", "msg_a", "ses_a", &part::text("hi"));
    db.sql(
        "CREATE TABLE odd (a, b, c, d, e); INSERT INTO odd VALUES (NULL, 9223372036854775807, -0.1, CAST(x'FF61' AS TEXT), x'00FF');
         INSERT INTO odd VALUES ('', 0, 1e308, 'a''b', zeroblob(0))",
    );
    let identity =
        DatabaseIdentity::read(db.connection(), &crate::DatabaseFile::find(db.path()).unwrap()).unwrap();
    let rows = "SELECT group_concat(rowid || quote(a) || typeof(a) || quote(b) || quote(c) || typeof(d) || hex(d) || typeof(e) || hex(e), ';') FROM odd";
    let before = db.text(rows);
    let archive = folder.path().join("undo.zst");
    let mut writer = Archive::open(&archive, &identity).unwrap();
    let unit = Unit {
        class: headwater_prune::Class::Events,
        place: crate::fence::SessionPlace::find(
            db.connection(),
            &crate::schema::Schema::read(db.connection()).unwrap(),
            Storage::V1,
            &headwater_model::SessionId::new("ses_a").unwrap(),
        )
        .unwrap()
        .unwrap(),
        message: None,
        receipt: None,
    };
    let mut digests = Vec::new();
    writer
        .append(&unit, |frame| {
            for rowid in [1, 2] {
                digests.push(frame.deleted(db.connection(), "odd", rowid)?);
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(row_digest(db.connection(), "odd", 1).unwrap(), Some(digests[0]));
    assert_ne!(digests[0], digests[1]);
    db.sql("DELETE FROM odd");
    assert_eq!(row_digest(db.connection(), "odd", 1).unwrap(), None);
    let path = db.close();
    assert_eq!(undo(&path, &archive).unwrap().rows_restored, 2);
    assert_eq!(Fixture::reopen(&path).text(rows), before);
}

#[test]
fn an_archive_is_private_and_readable_as_zstandard() {
    use std::os::unix::fs::PermissionsExt;
    let case = case(Storage::V1, Layout::V1);
    two_frames(&case);
    assert_eq!(fs::metadata(&case.archive).unwrap().permissions().mode() & 0o777, 0o600);
    let plain = plain(&fs::read(&case.archive).unwrap());
    let text = String::from_utf8_lossy(&plain);
    assert!(text.starts_with("{\"archive\":\"headwater-undo\",\"version\":1"), "{text:.80}");
    assert!(text.contains("CANARY out"));
}

const DATABASE: &str = "HEADWATER_TEST_UNDO_DATABASE";
const STEP: &str = "HEADWATER_TEST_UNDO_STEP";

/// The process that restores and is killed; passes at once when run as an ordinary test.
#[test]
fn killed_process_entry() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let observer = Killed(std::env::var(STEP).unwrap());
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(&path)).unwrap();
    let archive = path.with_file_name("undo.zst");
    let now = UnixMillis::new(NOW + 60_000);
    run(&database, &mut state, &archive, &NoServers, UndoOptions::default(), now, &observer).unwrap();
}

#[test]
fn a_kill_at_any_step_of_an_undo_leaves_the_pruned_or_the_restored_message() {
    use std::os::unix::process::ExitStatusExt;
    for (storage, layout) in STORAGES {
        for step in Step::ALL {
            let case = case(storage, layout);
            let before = dump(&case.path);
            let request = request(&case.path, &[0, 1]);
            receipt(prune_into(&case.path, &request, &case.archive));
            let pruned = dump(&case.path);
            let status = crate::fixture::test_process("undo::tests::killed_process_entry")
                .env(DATABASE, &case.path)
                .env(STEP, step.name())
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert_eq!(status.signal(), Some(9), "{storage:?} {step:?}");
            let is_restored = !matches!(step, Step::Verified | Step::Asked | Step::Restored);
            let expected = if is_restored { &before } else { &pruned };
            assert_eq!(&dump(&case.path), expected, "{storage:?} {step:?}");

            undo(&case.path, &case.archive).unwrap();
            assert_eq!(dump(&case.path), before, "{storage:?} {step:?}");
            // A receipt that was left behind is superseded: the same request prunes again.
            receipt(prune(&case.path, &request));
            assert_eq!((dump(&case.path), receipts(&case.path)), (pruned, 1), "{storage:?} {step:?}");
        }
    }
}

/// Takes the log away once units are restored, so that it cannot be synced.
struct LogAway(PathBuf);

impl crate::observer::Observer for LogAway {
    fn reached(&self, step: &'static str) {
        if step == Step::Committed.name() {
            fs::rename(&self.0, self.0.with_file_name("log-elsewhere")).unwrap();
        }
    }
}

#[test]
fn a_receipt_stays_until_what_was_undone_is_on_disk() {
    for (storage, layout) in STORAGES {
        let case = case(storage, layout);
        let before = dump(&case.path);
        receipt(prune_into(&case.path, &request(&case.path, &[0, 1]), &case.archive));
        let is_in_state = storage != Storage::V2 || layout == Layout::ReducedV2;
        let log = case.path.with_file_name("opencode.db-wal");
        let database = WriteDatabase::open(&case.path, Duration::ZERO).unwrap();
        let mut state = StateFile::open(&state_path(&case.path)).unwrap();
        let now = UnixMillis::new(NOW + 60_000);
        let away = LogAway(log.clone());
        let outcome =
            run(&database, &mut state, &case.archive, &NoServers, UndoOptions::default(), now, &away);
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("the write-ahead log cannot be synced"), "{storage:?}: {error}");
        drop((database, state));
        fs::rename(log.with_file_name("log-elsewhere"), &log).unwrap();
        assert_eq!(dump(&case.path), before, "{storage:?}");
        assert_eq!(receipts(&case.path), u64::from(is_in_state), "{storage:?}");
        undo(&case.path, &case.archive).unwrap();
        assert_eq!(dump(&case.path), before, "{storage:?}");
    }
}
