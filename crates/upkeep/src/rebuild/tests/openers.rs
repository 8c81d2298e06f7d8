//! Another process at every step: it finds the old database, an error, or the new one, and no row that it commits is lost.

use std::fs::{self, File};

use rusqlite::OpenFlags;
use rusqlite::types::Value;

use super::paused::{Paused, temporary_of, wait_for_held_open};
use super::sample::{Sample, content, content_of, expected};
use crate::fixture::{self, OtherProcess, v1_session};
use crate::rebuild::{RebuildErrorKind, Step};

const LOCKED: &str = "database is locked";
const READ: &str = "SELECT count(*) FROM session";

/// Steps at which the path names the old database and an `open(2)` goes through.
const BEFORE_LEASE: [Step; 9] = [
    Step::Locked,
    Step::Swept,
    Step::Planned,
    Step::Created,
    Step::Copied,
    Step::Indexed,
    Step::Synced,
    Step::Verified,
    Step::Checkpointed,
];

fn has_session(sample: &Sample, id: &str) -> bool {
    content(&sample.path)["session"].iter().any(|row| row[1] == Value::Text(id.into()))
}

#[test]
fn who_comes_while_the_lock_is_held_gets_an_error_and_commits_nothing() {
    for step in BEFORE_LEASE {
        let sample = Sample::new();
        let before = content(&sample.path);
        let rebuild = Paused::at(step, &sample.path, false);
        let mut writer = OtherProcess::open(&sample.path);
        assert_eq!(writer.run("PRAGMA busy_timeout = 0"), "ok");
        assert!(writer.run(&v1_session("ses_late")).contains(LOCKED), "{}", step.name());
        assert!(writer.run(READ).contains(LOCKED), "{}", step.name());
        let reader = read_only(&sample.path);
        assert!(reader.query_row(READ, [], |_| Ok(())).unwrap_err().to_string().contains(LOCKED));
        drop(reader);
        writer.close();
        assert_eq!(rebuild.finish(), "done Lease", "{}", step.name());
        assert!(content(&sample.path) == expected(before), "{}", step.name());
    }
}

#[expect(clippy::disallowed_methods, reason = "stands for a program other than this one")]
fn read_only(path: &std::path::Path) -> rusqlite::Connection {
    let db = rusqlite::Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    db.busy_timeout(std::time::Duration::ZERO).unwrap();
    db
}

#[test]
fn who_still_has_it_open_is_named_and_nothing_changes() {
    for step in BEFORE_LEASE {
        let sample = Sample::new();
        let before = content(&sample.path);
        let rebuild = Paused::at(step, &sample.path, false);
        let mut opener = OtherProcess::open(&sample.path);
        let outcome = rebuild.finish();
        assert!(outcome.contains("open elsewhere by"), "{}: {outcome}", step.name());
        assert!(outcome.contains(&format!("(pid {})", opener.pid())), "{}: {outcome}", step.name());
        assert_eq!(opener.run(&v1_session("ses_after")), "ok");
        opener.close();
        assert!(has_session(&sample, "ses_after"));
        let mut wanted = before;
        let mut found = content(&sample.path);
        for table in ["session", "message", "part"] {
            wanted.remove(table);
            found.remove(table);
        }
        assert!(found == wanted);
        assert_eq!(sample.names(), ["opencode.db"]);
    }
}

#[test]
fn an_idle_server_refuses_the_lock_and_is_not_disturbed() {
    let sample = Sample::new();
    let mut server = OtherProcess::open(&sample.path);
    assert_eq!(server.run(READ), "ok");
    let refused = sample.rebuild().unwrap_err();
    let RebuildErrorKind::InUse { holders } = &refused else { panic!("{refused}") };
    assert_eq!(holders.0.iter().map(|holder| holder.pid).collect::<Vec<_>>(), [server.pid()]);
    assert_eq!(server.run(&v1_session("ses_on")), "ok");
    server.close();
    assert!(has_session(&sample, "ses_on"));
}

#[test]
fn who_waits_in_its_busy_timeout_refuses_the_exchange_and_goes_on_with_the_old_file() {
    let sample = Sample::new();
    let mut rebuild = Paused::at(Step::Verified, &sample.path, false);
    let mut waiter = OtherProcess::open(&sample.path);
    assert_eq!(waiter.run("PRAGMA busy_timeout = 60000"), "ok");
    let waiting = std::thread::spawn(move || {
        let answer = waiter.run(&v1_session("ses_waited"));
        waiter.close();
        answer
    });
    rebuild.resume();
    assert!(rebuild.line().contains("open elsewhere"));
    assert_eq!(waiting.join().unwrap(), "ok");
    assert!(has_session(&sample, "ses_waited"));
}

#[test]
fn a_plain_reader_or_an_immutable_one_refuses_the_exchange() {
    for step in [Step::Checked, Step::Locked, Step::Verified, Step::Checkpointed] {
        let sample = Sample::new();
        let before = content(&sample.path);
        let rebuild = Paused::at(step, &sample.path, false);
        let reader = File::open(&sample.path).unwrap();
        assert!(rebuild.finish().contains("open elsewhere"), "{}", step.name());
        drop(reader);
        assert!(content(&sample.path) == before);
        let rebuild = Paused::at(step, &sample.path, false);
        let immutable = crate::rebuild::connect::resting(&sample.path).unwrap();
        assert!(rebuild.finish().contains("open elsewhere"), "{}", step.name());
        drop(immutable);
        assert!(content(&sample.path) == before);
    }
}

#[test]
fn who_opens_while_the_lease_is_held_waits_and_gets_the_old_database() {
    for step in [Step::Leased, Step::Settled] {
        let sample = Sample::new();
        let before = content(&sample.path);
        let rebuild = Paused::at(step, &sample.path, false);
        let path = sample.path.clone();
        let opening = std::thread::spawn(move || OtherProcess::open(&path));
        wait_for_held_open(&sample.path);
        let outcome = rebuild.finish();
        assert!(outcome.contains("open elsewhere"), "{}: {outcome}", step.name());
        let mut opener = opening.join().unwrap();
        assert_eq!(opener.run(&v1_session("ses_held")), "ok");
        opener.close();
        assert!(has_session(&sample, "ses_held"));
        assert_eq!(content(&sample.path)["event"], before["event"]);
        assert_eq!(sample.names(), ["opencode.db"]);
    }
}

#[test]
fn who_opens_after_the_exchange_gets_the_new_database_at_once_and_keeps_what_it_commits() {
    for step in [Step::Exchanged, Step::FolderSynced, Step::Retired] {
        let sample = Sample::new();
        let before = content(&sample.path);
        let rebuild = Paused::at(step, &sample.path, false);
        let db = fixture::connect(&sample.path);
        db.busy_timeout(std::time::Duration::ZERO).unwrap();
        assert!(content_of(&db) == expected(before), "{}", step.name());
        db.execute_batch(&v1_session("ses_new")).unwrap();
        let mut reader = OtherProcess::open(&sample.path);
        assert_eq!(reader.run(READ), "ok");
        assert_eq!(rebuild.finish(), "done Lease", "{}", step.name());
        db.execute_batch(&v1_session("ses_newer")).unwrap();
        db.execute_batch("PRAGMA wal_checkpoint").unwrap();
        reader.close();
        db.close().unwrap();
        assert!(has_session(&sample, "ses_new") && has_session(&sample, "ses_newer"), "{}", step.name());
        assert_eq!(sample.names(), ["opencode.db"]);
    }
}

/// An `open(2)` that began before the exchange and is held at the lease gets the old file. Here it is begun through the name that the
/// old file has after the exchange, which reaches the same file and the same lease.
#[test]
fn who_is_held_at_the_old_file_fails_on_the_lock_which_stays_until_it_has_gone() {
    let sample = Sample::new();
    let mut rebuild = Paused::at(Step::Exchanged, &sample.path, false);
    let old = temporary_of(&sample.path);
    let by_old_name = old.clone();
    let opening = std::thread::spawn(move || OtherProcess::open(&by_old_name));
    wait_for_held_open(&old);
    rebuild.resume();
    assert_eq!(rebuild.line(), "waiting");
    let mut held = opening.join().unwrap();
    assert_eq!(held.run("PRAGMA busy_timeout = 0"), "ok");
    assert!(held.run(READ).contains(LOCKED));
    assert!(fs::exists(format!("/proc/{}", rebuild.pid())).unwrap());
    assert!(held.run(&v1_session("ses_lost")).contains(LOCKED));
    held.close();
    assert_eq!(rebuild.line(), "done Lease");
    assert!(!has_session(&sample, "ses_lost"));
}

/// MEASURED order of events that lost rows with a bare rename: A opens and runs nothing; the rebuild; C commits; A checkpoints.
#[test]
fn a_stale_opener_never_loses_rows_of_another() {
    let sample = Sample::new();
    let mut stale = OtherProcess::open(&sample.path);
    let refused = sample.rebuild().unwrap_err();
    assert!(matches!(refused, RebuildErrorKind::InUse { .. }), "{refused}");
    let mut committer = OtherProcess::open(&sample.path);
    for row in 0..60 {
        assert_eq!(committer.run(&v1_session(&format!("ses_{row:02}"))), "ok");
    }
    assert_eq!(stale.run(READ), "ok");
    assert_eq!(stale.run("PRAGMA wal_checkpoint"), "ok");
    committer.kill();
    stale.close();
    let found = content(&sample.path);
    assert_eq!(found["session"].len(), 61);
}

#[test]
fn copying_back_in_place_serves_whoever_has_the_file_open() {
    for step in [Step::Checked, Step::Locked, Step::Verified, Step::Checkpointed, Step::CopiedBack] {
        let sample = Sample::new();
        let before = content(&sample.path);
        let mut opener =
            (step == Step::Checked || step == Step::CopiedBack).then(|| OtherProcess::open(&sample.path));
        let rebuild = Paused::at(step, &sample.path, true);
        let mut opener = opener.take().unwrap_or_else(|| OtherProcess::open(&sample.path));
        assert_eq!(opener.run("PRAGMA busy_timeout = 0"), "ok");
        if step != Step::Checked {
            assert!(opener.run(READ).contains(LOCKED), "{}", step.name());
        }
        assert_eq!(rebuild.finish(), "done InPlace", "{}", step.name());
        assert_eq!(opener.run(&v1_session("ses_same")), "ok");
        assert!(has_session(&sample, "ses_same"));
        opener.close();
        let (wanted, found) = (expected(before), content(&sample.path));
        for table in ["event", "message"] {
            let kept = found[table].iter().filter(|row| row[1] != Value::Text("msg_ses_same".into()));
            assert!(kept.eq(wanted[table].iter()), "{table} at {}", step.name());
        }
    }
}
