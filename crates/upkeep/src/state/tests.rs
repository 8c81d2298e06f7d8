use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use headwater_model::{ContentRevision, UnixMillis};

use super::*;

#[test]
fn a_state_file_and_its_folder_are_private_to_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/headwater/receipts.db");
    let mut state = StateFile::open(&path).unwrap();
    let database = database_of(&mut state, folder.path(), "a.db");
    let claim = state.claim(database, Duration::ZERO).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(claim);
}

#[test]
fn a_file_that_is_something_else_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.db");
    let connection = plain_connection(&other);
    connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    drop(connection);
    let newer = folder.path().join("newer.db");
    drop(StateFile::open(&newer).unwrap());
    plain_connection(&newer).pragma_update(None, "user_version", 99).unwrap();
    let text = folder.path().join("text.db");
    fs::write(&text, "hello, this is a text of more than sixteen bytes".repeat(50)).unwrap();

    for (path, is_expected) in [
        (&other, (|kind| matches!(kind, StateErrorKind::NotAStateFile)) as fn(&StateErrorKind) -> bool),
        (&newer, |kind| matches!(kind, StateErrorKind::Newer { found: 99 })),
        (&text, |kind| matches!(kind, StateErrorKind::NotAStateFile)),
    ] {
        let before = fs::read(path).unwrap();
        let error = StateFile::open(path).unwrap_err();
        assert!(is_expected(&error.kind), "{}: {error}", path.display());
        assert_eq!(fs::read(path).unwrap(), before, "{}", path.display());
    }
}

/// The order intent, change, resolution holds after a power cut only if each is on disk before the next (P6).
#[test]
fn every_commit_is_synced_before_the_call_returns() {
    let folder = tempfile::tempdir().unwrap();
    let state = StateFile::open(&folder.path().join("receipts.db")).unwrap();
    let pragma = |name| state.connection.pragma_query_value(None, name, |row| row.get::<_, String>(0));
    let synchronous: u32 =
        state.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert!(synchronous >= 2, "FULL");
    assert_eq!(pragma("journal_mode").unwrap(), "delete");
}

#[test]
fn an_intent_counts_only_after_it_is_resolved_as_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("receipts.db");
    let mut state = StateFile::open(&path).unwrap();
    let database = database_of(&mut state, folder.path(), "a.db");
    state.intend(database, &[intent("k1"), intent("k2")]).unwrap();
    assert_eq!(state.receipt(database, "k1").unwrap(), None);

    drop(state);
    let mut state = StateFile::open(&path).unwrap();
    let keys = |state: &StateFile| {
        state.intents(database).unwrap().into_iter().map(|intent| intent.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(&state), ["k1", "k2"]);
    state.resolve(database, [("k1", Resolution::Done), ("k2", Resolution::Void)]).unwrap();
    state.resolve(database, [("k1", Resolution::Void), ("k2", Resolution::Done)]).unwrap();
    assert_eq!(keys(&state), [""; 0]);
    assert_eq!(state.receipt(database, "k1").unwrap().unwrap().receipt, "{}");
    assert_eq!(state.receipt(database, "k2").unwrap(), None);
    assert_eq!(state.receipt_count(database).unwrap(), 1);

    state.forget(database, ["k1"]).unwrap();
    assert_eq!(state.receipt(database, "k1").unwrap(), None);
}

#[test]
fn a_copy_elsewhere_and_a_new_database_at_the_same_path_are_other_databases() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = StateFile::open(&folder.path().join("receipts.db")).unwrap();
    let first = database_of(&mut state, folder.path(), "a.db");
    fs::copy(folder.path().join("a.db"), folder.path().join("b.db")).unwrap();
    assert_ne!(database_of(&mut state, folder.path(), "b.db"), first);

    let connection = plain_connection(&folder.path().join("a.db"));
    connection.execute_batch("INSERT INTO migration VALUES ('20270101000000_later', 900)").unwrap();
    assert_eq!(database_of(&mut state, folder.path(), "a.db"), first, "an upgrade is the same database");
    connection.execute_batch("UPDATE migration SET time_completed = time_completed + 1").unwrap();
    assert_ne!(database_of(&mut state, folder.path(), "a.db"), first, "created at another time");
}

#[test]
fn a_claim_excludes_others_on_the_same_database_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = StateFile::open(&folder.path().join("receipts.db")).unwrap();
    let (a, b) =
        (database_of(&mut state, folder.path(), "a.db"), database_of(&mut state, folder.path(), "b.db"));
    let claim = state.claim(a, Duration::ZERO).unwrap();
    let error = state.claim(a, Duration::ZERO).unwrap_err();
    assert!(matches!(error.kind, StateErrorKind::Busy), "{error}");
    drop(state.claim(b, Duration::ZERO).unwrap());
    drop(claim);
    drop(state.claim(a, Duration::ZERO).unwrap());
}

#[test]
fn runs_are_found_by_kind_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = StateFile::open(&folder.path().join("receipts.db")).unwrap();
    let database = database_of(&mut state, folder.path(), "a.db");
    for (start, end) in [(10, RunEnd::Done), (20, RunEnd::Skipped)] {
        let run = state.begin_run(database, RunKind::Retention, UnixMillis::new(start)).unwrap();
        state.end_run(run, end, "{}", UnixMillis::new(start + 1)).unwrap();
    }
    let started =
        |kind, end| state.last_run(database, kind, end).unwrap().map(|run| (run.started.get(), run.end));
    assert_eq!(started(RunKind::Retention, None), Some((20, Some(RunEnd::Skipped))));
    assert_eq!(started(RunKind::Retention, Some(RunEnd::Done)), Some((10, Some(RunEnd::Done))));
    assert_eq!(started(RunKind::RetentionPreview, None), None);
}

fn intent(key: &str) -> Intent {
    Intent {
        key: key.to_owned(),
        session: "ses_1".to_owned(),
        message: "msg_1".to_owned(),
        evidence: Evidence {
            before: ContentRevision::from_bytes([1; 32]),
            after: ContentRevision::from_bytes([2; 32]),
            gone: vec!["prt_1".to_owned()],
        },
        receipt: "{}".to_owned(),
        intended: UnixMillis::new(5),
    }
}

/// The row of the database `name` in `folder`, which is created where it is missing.
fn database_of(state: &mut StateFile, folder: &Path, name: &str) -> DatabaseKey {
    let path = folder.join(name);
    let connection = plain_connection(&path);
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS migration (id text PRIMARY KEY, time_completed integer NOT NULL);
             INSERT OR IGNORE INTO migration VALUES ('20260101000000_first', 700)",
        )
        .unwrap();
    let file = crate::DatabaseFile::find(&path).unwrap();
    let identity = DatabaseIdentity::read(&connection, &file).unwrap();
    state.database(&identity).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test builds its own files")]
fn plain_connection(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}
