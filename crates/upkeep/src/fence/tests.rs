use std::path::{Path, PathBuf};

use headwater_model::SessionId;
use headwater_testkit::fixture::{Fixture, Layout, NOW, Session, message, part, v2};

use super::*;
use crate::WriteDatabase;
use crate::lock::{LockError, LockPolicy, ShortLocks, Step};

/// A probe with fixed answers.
struct Says(Holders, Activity);

impl ServerProbe for Says {
    fn holders(&self) -> Holders {
        self.0
    }
    fn activity(&self, _session: &str, _directory: &str) -> Activity {
        self.1
    }
}

const ALONE: Says = Says(Holders::Nobody, Activity::Idle);
const HELD: Says = Says(Holders::Others, Activity::Unknown);
const HIDDEN: Says = Says(Holders::Unknown, Activity::Unknown);

/// What the fence says to a session `ses_a` after `change` was made to it, a minute after its last use.
fn verdict(layout: Layout, storage: Storage, probe: &Says, change: &str) -> Result<(), Refusal> {
    verdict_with(layout, storage, probe, change, FenceOptions::default(), Subject::Content)
}

fn verdict_with(
    layout: Layout,
    storage: Storage,
    probe: &Says,
    change: &str,
    options: FenceOptions,
    subject: Subject,
) -> Result<(), Refusal> {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), layout, storage);
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let session = SessionId::new("ses_a").unwrap();
    let place =
        SessionPlace::find(database.connection(), database.schema(), storage, &session).unwrap().unwrap();
    let clock = Clock::starting_at(UnixMillis::new(NOW + 60_000));
    let mut fence = Fence::new(database.connection(), options, probe, clock).unwrap();
    let mut locks = ShortLocks::new(&database, LockPolicy::IMMEDIATE).unwrap();
    let asked = fence.ask(&place)?;
    // What happens between the question and the lock.
    Fixture::reopen(&path).sql(change);
    locks.run(|held| Ok::<_, LockError>(Step::Rollback(fence.check(held, &place, asked, subject)?))).unwrap()
}

fn database(folder: &Path, layout: Layout, storage: Storage) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), layout);
    match storage {
        Storage::V1 => {
            db.session(&Session::named("ses_a"));
            db.user("msg_1", "ses_a");
            db.assistant("msg_2", "ses_a");
            db.part("prt_1", "msg_2", "ses_a", &part::bash("call_1", "out"));
        }
        Storage::V2 => {
            db.session_v2(&Session::named("ses_a"));
            db.session_message("msg_1", "ses_a", "assistant", 0, NOW, &v2::assistant(&[v2::text("hi")]));
        }
        Storage::V2OnV1Session => {
            db.session(&Session::named("ses_a"));
            db.session_message("msg_1", "ses_a", "assistant", 0, NOW, &v2::assistant(&[v2::text("hi")]));
        }
    }
    db.close()
}

#[test]
fn an_idle_session_may_be_written_in_every_layout() {
    for (layout, storage) in [
        (Layout::V1, Storage::V1),
        (Layout::ReducedV1, Storage::V1),
        (Layout::Both, Storage::V1),
        (Layout::V1, Storage::V2OnV1Session),
        (Layout::V2, Storage::V2),
        (Layout::Both, Storage::V2),
        (Layout::ReducedV2, Storage::V2),
    ] {
        for probe in [&ALONE, &HELD, &HIDDEN] {
            assert_eq!(verdict(layout, storage, probe, ""), Ok(()), "{layout:?} {storage:?}");
        }
    }
}

#[test]
fn every_claim_that_appears_between_question_and_lock_refuses() {
    let session_2x = |column: &str| format!("UPDATE session_v2 SET {column}");
    let kept = |reason: KeptReason| Err(Refusal::Kept(reason));
    let inbox = "INSERT INTO session_inbox VALUES ('i', 'ses_a', 'user', '{}', 'queue', 1, 1)";
    let pending = "INSERT INTO session_pending VALUES ('i', 'ses_a', 'user', '{}', 'queue', 1, 1)";
    let owner = "INSERT INTO event_sequence VALUES ('ses_a', 0, 'elsewhere')";
    let event = "INSERT INTO event_sequence VALUES ('ses_a', 0, NULL);
        INSERT INTO event (id, aggregate_id, seq, type, data) VALUES ('e', 'ses_a', 0, 'session.updated.1', '{}')";
    let gone = "PRAGMA foreign_keys = off; DELETE FROM session_v2";
    let table = [
        ("running", session_2x("time_suspended = 1"), kept(KeptReason::Executing)),
        ("compacting", session_2x("time_compacting = 1"), kept(KeptReason::Compacting)),
        ("revert staged", session_2x("revert = '{}'"), kept(KeptReason::RevertStaged)),
        ("input waits", inbox.to_owned(), kept(KeptReason::InputWaiting)),
        ("input waits in the older table", pending.to_owned(), kept(KeptReason::InputWaiting)),
        ("owned elsewhere", owner.to_owned(), kept(KeptReason::OwnedElsewhere)),
        ("events retained", event.to_owned(), kept(KeptReason::EventsRetained)),
        ("deleted", gone.to_owned(), kept(KeptReason::Gone)),
        ("other directory", session_2x("directory = '/elsewhere'"), Err(Refusal::Moved)),
        ("other workspace", session_2x("workspace_id = 'w'"), Err(Refusal::Moved)),
        ("other project", session_2x("project_id = 'p'"), Err(Refusal::Moved)),
    ];
    for (name, change, expected) in table {
        let change = format!("PRAGMA foreign_keys = off; {change}");
        assert_eq!(verdict(Layout::V2, Storage::V2, &ALONE, &change), expected, "{name}");
    }
    let events_only =
        verdict_with(Layout::V2, Storage::V2, &ALONE, event, FenceOptions::default(), Subject::Events);
    assert_eq!(events_only, Ok(()), "events may go although events are retained");
    let claimed = "INSERT INTO session_v2 SELECT id, project_id, workspace_id, parent_id, NULL, NULL, slug, directory, path, title, \
        version, share_url, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1, 1, NULL, NULL, NULL, NULL, NULL, 1, 0 FROM session";
    assert_eq!(
        verdict(Layout::Both, Storage::V1, &ALONE, claimed),
        kept(KeptReason::Executing),
        "a claim on the 2.x row holds for the 1.x rows of the same session"
    );
}

#[test]
fn a_turn_that_begins_in_1x_refuses() {
    let row = message::assistant_unfinished("msg_1", NOW);
    let turn = format!("INSERT INTO message VALUES ('msg_3', 'ses_a', {NOW} + 1, {NOW} + 1, '{row}')");
    let options = FenceOptions { interrupted: true, ..FenceOptions::default() };
    let of = |probe, options, subject| verdict_with(Layout::V1, Storage::V1, probe, &turn, options, subject);
    let default = FenceOptions::default();
    for probe in [&HELD, &HIDDEN] {
        for options in [default, options] {
            for subject in [Subject::Content, Subject::Events] {
                assert_eq!(of(probe, options, subject), Err(KeptReason::Executing.into()));
            }
        }
    }
    assert_eq!(of(&ALONE, default, Subject::Content), Err(KeptReason::Interrupted.into()));
    assert_eq!(of(&ALONE, options, Subject::Content), Ok(()), "the other messages of an interrupted session");
    assert_eq!(of(&ALONE, default, Subject::Events), Ok(()));

    let row = v2::assistant_unfinished(&[v2::text("hi")]);
    let turn = format!(
        "INSERT INTO session_message VALUES ('msg_3', 'ses_a', 'assistant', 5, {NOW} + 1, {NOW} + 1, '{row}')"
    );
    for storage in [Storage::V1, Storage::V2OnV1Session] {
        let expected = Err(KeptReason::Executing.into());
        assert_eq!(verdict(Layout::V1, storage, &HELD, &turn), expected, "{storage:?}");
    }
}

#[test]
fn a_row_of_a_message_that_cannot_be_read_counts_as_a_running_turn() {
    for data in ["'{'", "x'00'", "7", "'[]'", "'{\"role\":1}'"] {
        let change = format!("UPDATE message SET data = {data} WHERE id = 'msg_2'");
        assert_eq!(
            verdict(Layout::V1, Storage::V1, &HELD, &change),
            Err(KeptReason::Executing.into()),
            "{data}"
        );
    }
}

#[test]
fn a_1x_session_settles_first_whatever_row_changed() {
    for (table, id) in [("session", "ses_a"), ("message", "msg_1"), ("part", "prt_1")] {
        let at = |ms: i64| {
            let change = format!("UPDATE {table} SET time_updated = {NOW} + 60000 + {ms} WHERE id = '{id}'");
            move |probe| verdict(Layout::V1, Storage::V1, probe, &change)
        };
        let unsettled = Err(KeptReason::NotSettled.into());
        assert_eq!(at(-1000)(&ALONE), unsettled, "{table}");
        assert_eq!(at(-2000)(&ALONE), Ok(()), "{table}");
        // A time in the future was written under another clock, perhaps a moment ago.
        assert_eq!(at(3_600_000)(&HELD), unsettled, "{table}");
        assert_eq!(at(3_600_000)(&ALONE), Ok(()), "{table}");
    }
}

#[test]
fn a_busy_server_refuses_before_the_lock() {
    let busy = Says(Holders::Others, Activity::Busy);
    assert_eq!(verdict(Layout::V1, Storage::V1, &busy, ""), Err(KeptReason::Executing.into()));
}

#[test]
fn a_database_that_is_not_understood_is_refused() {
    let unsupported = |reason: Unsupported| Err(Refusal::Unsupported(reason));
    let trigger = "CREATE TRIGGER t AFTER DELETE ON part BEGIN DELETE FROM message; END";
    let of = |change| verdict(Layout::V1, Storage::V1, &ALONE, change);
    assert_eq!(of(trigger), unsupported(Unsupported::Triggers));
    assert_eq!(
        of("ALTER TABLE session ADD COLUMN time_claimed integer"),
        unsupported(Unsupported::UnknownColumn { table: "session" })
    );
    assert_eq!(
        of("ALTER TABLE part RENAME COLUMN data TO body"),
        unsupported(Unsupported::Missing { table: "part" })
    );
    assert_eq!(of("CREATE TABLE somebody (id text); ALTER TABLE project ADD COLUMN more text"), Ok(()));
}

#[test]
fn an_attached_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), Layout::V1, Storage::V1);
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let session = SessionId::new("ses_a").unwrap();
    let place =
        SessionPlace::find(database.connection(), database.schema(), Storage::V1, &session).unwrap().unwrap();
    let clock = Clock::starting_at(UnixMillis::new(NOW + 60_000));
    let mut fence = Fence::new(database.connection(), FenceOptions::default(), &ALONE, clock).unwrap();
    database.connection().execute_batch("ATTACH ':memory:' AS other").unwrap();
    let mut locks = ShortLocks::new(&database, LockPolicy::IMMEDIATE).unwrap();
    let asked = fence.ask(&place).unwrap();
    let verdict = locks
        .run(|held| Ok::<_, LockError>(Step::Rollback(fence.check(held, &place, asked, Subject::Content)?)))
        .unwrap();
    assert_eq!(verdict, Err(Unsupported::Attached.into()));
}

#[test]
fn an_answer_older_than_its_limit_must_be_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), Layout::V1, Storage::V1);
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let session = SessionId::new("ses_a").unwrap();
    let place =
        SessionPlace::find(database.connection(), database.schema(), Storage::V1, &session).unwrap().unwrap();
    let clock = Clock::starting_at(UnixMillis::new(NOW + 60_000));
    let mut fence = Fence::new(database.connection(), FenceOptions::default(), &ALONE, clock).unwrap();
    let mut locks = ShortLocks::new(&database, LockPolicy::IMMEDIATE).unwrap();
    let old = Instant::now().checked_sub(ASKED_AGE_MAX + Duration::from_millis(1)).unwrap();
    let asked = Asked { at: old, ..fence.ask(&place).unwrap() };
    let verdict = locks
        .run(|held| Ok::<_, LockError>(Step::Rollback(fence.check(held, &place, asked, Subject::Content)?)))
        .unwrap();
    assert_eq!(verdict, Err(Refusal::AskedTooLongAgo));
}

/// A server that has looked at once, and whose answer is long under way.
struct Slow {
    to_delay: std::sync::atomic::AtomicU32,
    asked: std::sync::atomic::AtomicU32,
    /// Slow answers that are over once the server was asked beforehand.
    is_cold: bool,
}

impl Slow {
    fn first(answers: u32) -> Self {
        Self { to_delay: answers.into(), asked: 0.into(), is_cold: false }
    }

    /// Slow until it was asked beforehand.
    fn cold() -> Self {
        Self { is_cold: true, ..Self::first(u32::MAX) }
    }

    fn asked(&self) -> u32 {
        self.asked.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl ServerProbe for Slow {
    fn holders(&self) -> Holders {
        Holders::Others
    }

    fn warm(&self, directory: &str) {
        assert_eq!(directory, "/home/user/a");
        if self.is_cold {
            self.to_delay.store(0, std::sync::atomic::Ordering::SeqCst);
        }
    }

    fn activity(&self, _session: &str, _directory: &str) -> Activity {
        use std::sync::atomic::Ordering::SeqCst;
        self.asked.fetch_add(1, SeqCst);
        if self.to_delay.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            std::thread::sleep(ASKED_AGE_MAX + Duration::from_millis(1));
        }
        Activity::Idle
    }
}

/// Rows that a turn writes after the server looked and before its answer comes are settled when the lock is had, if the age of the answer
/// is counted from the answer.
#[test]
fn an_answer_is_as_old_as_the_question() {
    for (name, probe, verdict, questions) in [
        ("one slow answer", Slow::first(1), Ok(()), 2),
        ("two slow answers", Slow::first(2), Ok(()), 3),
        ("only slow answers", Slow::first(3), Err(Refusal::AskedTooLongAgo), 3),
        ("a cold server", Slow::cold(), Ok(()), 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = database(folder.path(), Layout::V1, Storage::V1);
        let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
        let session = SessionId::new("ses_a").unwrap();
        let place = SessionPlace::find(database.connection(), database.schema(), Storage::V1, &session)
            .unwrap()
            .unwrap();
        let clock = Clock::starting_at(UnixMillis::new(NOW + 60_000));
        let mut fence = Fence::new(database.connection(), FenceOptions::default(), &probe, clock).unwrap();
        let mut locks = ShortLocks::new(&database, LockPolicy::IMMEDIATE).unwrap();
        let asked = fence.ask(&place).unwrap();
        let found = locks
            .run(|held| {
                Ok::<_, LockError>(Step::Rollback(fence.check(held, &place, asked, Subject::Content)?))
            })
            .unwrap();
        assert_eq!((found, probe.asked()), (verdict, questions), "{name}");
    }
}
