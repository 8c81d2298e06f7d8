use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::*;
use crate::fixture::{self, Folder, v1_session};
use crate::observer::Unobserved;

const MIGRATED: &str = "INSERT INTO migration VALUES ('20260101_a', 1), ('20260622_b', 2);";

fn made(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    fixture::database(&path, &format!("{MIGRATED}{sql}"));
    (folder, path)
}

fn report(path: &Path) -> CheckReport {
    let before = Folder::of(path.parent().unwrap());
    let report =
        ReadDatabase::with(path, |database| run(database, CheckOptions::default(), &Unobserved)).unwrap();
    assert_eq!(before, Folder::of(path.parent().unwrap()));
    report
}

/// Code, table, count, first example.
fn found(report: &CheckReport) -> Vec<(Code, Option<&str>, u64, &str)> {
    report
        .findings
        .iter()
        .map(|finding| (finding.code, finding.table.as_deref(), finding.count, finding.examples[0].as_str()))
        .collect()
}

#[test]
fn a_sound_database_has_no_finding() {
    let (_folder, path) = made(&v1_session("ses_a"));
    let report = report(&path);
    assert_eq!(found(&report), []);
    assert_eq!((report.worst, report.rows_decoded), (None, 2));
    let migrations = Migrations { count: 2, newest: Some("20260622_b".to_owned()) };
    assert_eq!(report.settings.migrations, Some(migrations));
    assert_eq!((report.settings.journal_mode, report.settings.page_bytes), ("wal", 4096));
}

#[test]
fn every_kind_of_row_fault_is_named_and_counted() {
    let (_folder, path) = made(&(v1_session("ses_a")
        + &v1_session("ses_twice")
        + "INSERT INTO session_v2 (id, project_id, parent_id, directory, time_created, time_updated) VALUES
             ('ses_twice', 'prj_a', NULL, '/a', 1, 1), ('ses_l1', 'prj_a', 'ses_l2', '/a', 1, 1), ('ses_l2', 'prj_a', 'ses_l1', '/a', 1, 1),
             ('ses_lost', 'prj_a', 'ses_no', '/a', 1, 1);
           INSERT INTO part VALUES ('prt_1', 'msg_gone', 'ses_a', 1, 1, '{\"type\":\"text\",\"text\":\"x\"}');
           INSERT INTO part VALUES ('prt_2', 'msg_ses_a', 'ses_a', 1, 1, '{\"type\":\"text\"}');
           INSERT INTO part VALUES ('prt_3', 'msg_ses_a', 'ses_a', 1, 1, x'7b7d');
           INSERT INTO message VALUES ('msg_1', 'ses_gone', 1, 1, 'not json');
           INSERT INTO todo VALUES ('ses_gone', 'c', 0);
           INSERT INTO event_sequence VALUES ('ses_a', 3, NULL), ('ses_twice', 0, NULL), ('ses_dead', 1, NULL);
           INSERT INTO event VALUES ('e1', 'ses_a', 4, 'x.1', '{}'), ('e2', 'ses_dead', 0, 'x.1', '{}'), ('e3', 'ses_dead', 1, 'x.1', '{}'),
             ('e4', 'ses_l1', 0, 'x.1', '{}'), ('e5', 'ses_a', 0, 'session.deleted.1', '{}');
           INSERT INTO session_message VALUES ('smg_1', 'ses_twice', 'user', 5, 1, 1, '{\"time\":{\"created\":1},\"text\":\"q\",\"files\":[]}');"));
    let report = report(&path);
    let expected = [
        (Code::UndecodableRow, Some("message"), 1, "msg_1: "),
        (Code::UndecodableRow, Some("part"), 2, "prt_2: "),
        (Code::SequenceBehind, Some("event"), 1, "ses_a: counter 3, rows to 4"),
        (Code::SequenceBehind, Some("session_message"), 1, "ses_twice: counter 0, rows to 5"),
        (Code::ForeignKey, Some("event"), 1, "row "),
        (Code::ForeignKey, Some("message"), 1, "row "),
        (Code::ForeignKey, Some("part"), 1, "row "),
        (Code::ForeignKey, Some("todo"), 1, "row "),
        (Code::PartWithoutMessage, Some("part"), 1, "prt_1"),
        (Code::MessageWithoutSession, Some("message"), 1, "ses_gone"),
        (Code::RowWithoutSession, Some("todo"), 1, "ses_gone"),
        (Code::EventsWithoutSequence, Some("event"), 1, "ses_l1"),
        (Code::ParentMissing, None, 1, "ses_lost"),
        (Code::ParentLoop, None, 1, "ses_l"),
        (Code::EventsWithoutSession, Some("event"), 2, "ses_dead"),
        (Code::SequenceWithoutSession, Some("event_sequence"), 1, "ses_dead"),
        (Code::SessionInBothLayouts, None, 1, "ses_twice"),
        (Code::Leftover, None, 1, "ses_a"),
    ];
    let found = found(&report);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.0, found.1, found.2), (expected.0, expected.1, expected.2), "{found:?}");
        assert!(found.3.starts_with(expected.3), "{found:?}");
    }
    assert_eq!(report.worst, Some(Severity::Error));
}

#[test]
fn what_the_schema_has_and_lacks_is_named() {
    let (_folder, path) = made(
        "CREATE TABLE notes (a); CREATE VIEW v AS SELECT 1; ALTER TABLE part ADD COLUMN extra;
         CREATE TRIGGER t AFTER INSERT ON todo BEGIN SELECT 1; END; DROP INDEX part_session_idx; DELETE FROM migration;",
    );
    fixture::connect(&path)
        .execute_batch("PRAGMA journal_mode=DELETE; PRAGMA auto_vacuum=2; VACUUM; PRAGMA user_version=3;")
        .unwrap();
    let report = report(&path);
    assert_eq!(
        found(&report),
        [
            (Code::NoMigrations, None, 1, "migration"),
            (Code::Trigger, None, 1, "t"),
            (Code::MissingIndex, Some("part"), 1, "session_id"),
            (Code::UnknownTable, None, 1, "notes"),
            (Code::UnknownColumn, Some("part"), 1, "extra"),
            (Code::View, None, 1, "v"),
            (Code::JournalMode, None, 1, "delete"),
            (Code::AutoVacuum, None, 1, "incremental"),
        ]
    );
    assert_eq!(report.settings.user_version, 3);
}

#[test]
fn damaged_pages_are_findings_and_the_rest_is_still_checked() {
    let (_folder, path) = made(&(v1_session("ses_a") + &v1_session("ses_b")));
    let root: i64 = fixture::connect(&path)
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'part'", [], |row| row.get(0))
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let start = usize::try_from((root - 1) * 4096).unwrap();
    bytes[start..start + 4096].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let report = report(&path);
    let codes: Vec<Code> = report.findings.iter().map(|finding| finding.code).collect();
    assert!(codes.contains(&Code::PageDamage), "{codes:?}");
    assert!(codes.contains(&Code::StepStopped), "{codes:?}");
    assert!(report.rows_decoded >= 2, "{}", report.rows_decoded);
}

#[test]
fn a_quick_check_reads_no_payload() {
    let (_folder, path) = made(&(v1_session("ses_a") + "UPDATE part SET data = 'broken';"));
    let options = CheckOptions { quick: true };
    let report = ReadDatabase::with(&path, |database| run(database, options, &Unobserved)).unwrap();
    assert_eq!((found(&report), report.rows_decoded), (vec![], 0));
}

#[test]
fn a_row_too_large_to_be_judged_is_read_through() {
    let (_folder, path) = made(
        &(v1_session("ses_a")
            + "UPDATE part SET data = json_object('type', 'text', 'text', printf('%.*c', 9000000, 'x'));
           INSERT INTO part SELECT 'prt_bad', message_id, session_id, 1, 1, data || '}' FROM part;"),
    );
    let report = report(&path);
    assert_eq!(report.findings.len(), 2);
    let found = found(&report);
    assert!(found[0].3.starts_with("prt_bad: not JSON from byte 90000"), "{found:?}");
    assert_eq!(found[1], (Code::RowNotJudged, Some("part"), 1, "prt_ses_a"));
}

struct StopAtOnce(AtomicU32);

impl Observer for StopAtOnce {
    fn is_cancelled(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) > 1
    }
}

#[test]
fn a_cancelled_check_ends_without_a_report() {
    let (_folder, path) = made(&v1_session("ses_a"));
    let stopping = StopAtOnce(AtomicU32::new(0));
    let outcome = ReadDatabase::with(&path, |database| run(database, CheckOptions::default(), &stopping));
    assert!(matches!(outcome, Err(ReadError::Cancelled)), "{outcome:?}");
}

#[test]
fn pages_that_two_tables_share_are_found_also_by_a_quick_check() {
    let (_folder, path) = made(&v1_session("ses_a"));
    fixture::share_pages(&path);
    for quick in [false, true] {
        let options = CheckOptions { quick };
        let report = ReadDatabase::with(&path, |database| run(database, options, &Unobserved)).unwrap();
        assert_eq!(report.worst, Some(Severity::Error), "quick: {quick}");
        let example = report.findings[0].examples[0].clone();
        assert_eq!(report.findings[0].code, Code::PageDamage, "quick: {quick}");
        assert!(example.contains("2nd reference to page"), "{example}");
    }
}
