//! Readings that have no need of a giant row must not read it: bytes are counted, for time says nothing.

use std::process::Command;

use headwater_testkit::measure;

use super::*;
use crate::sessions::{self, SessionQuery, SessionSort};
use crate::stats;

/// The environment variables that make [`child_entry`] read, and what.
const DATABASE: &str = "HEADWATER_TEST_READING_DATABASE";
const WHAT: &str = "HEADWATER_TEST_READING";

const MIB: u64 = 1 << 20;

/// A tool call of 64 MiB in one session, its copy in the event log, and a small session beside it.
fn giant(db: &Fixture) {
    db.session(&Session::named("ses_a"));
    db.user("msg_a", "ses_a");
    db.part("prt_a", "msg_a", "ses_a", &part::bash("call_a", "LONG"));
    db.part_event("ses_a", "msg_a", "prt_a", &part::bash("call_a", "LONG"));
    db.session(&Session::named("ses_b"));
    db.user("msg_b", "ses_b");
    db.part("prt_b", "msg_b", "ses_b", &part::text("a needle"));
    for table in ["part", "event"] {
        db.sql(&format!("UPDATE {table} SET data = replace(data, 'LONG', hex(zeroblob(32 << 20)))"));
        assert!(db.integer(&format!("SELECT max(octet_length(data)) FROM {table}")) > 64 << 20);
    }
}

#[test]
fn giant_rows_are_not_read_where_they_are_not_searched() {
    let (_folder, path) = built(Layout::V1, giant);
    // What each reading may read beside a payload of 64 MiB, which the searches that need it do read.
    for (what, read_min, read_max) in [
        ("stats", 0, 4 * MIB),
        ("sessions", 0, 4 * MIB),
        ("search session", 0, 4 * MIB),
        ("search content", 64 * MIB, 100 * MIB),
    ] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "search::tests::reading::child_entry", "--nocapture"]);
        let measured = measure::run(child.env(DATABASE, &path).env(WHAT, what));
        let printed = String::from_utf8_lossy(&measured.output.stdout);
        assert!(printed.contains("read what was asked for"), "{what}: {:?}", measured.output);
        let range = read_min..read_max;
        assert!(range.contains(&measured.read_bytes), "{what} read {} bytes", measured.read_bytes);
    }
}

#[test]
fn child_entry() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let what = std::env::var(WHAT).unwrap();
    let path = path.as_ref();
    let found = |options: &SearchOptions| search(path, "needle", options).1.hits;
    match what.as_str() {
        "stats" => {
            let options = stats::StatsOptions::new(headwater_model::UnixMillis::new(NOW));
            let report = ReadDatabase::with::<_, crate::plan::PlanError>(path, |database| {
                stats::compute(database, &options, &Unobserved)
            });
            assert_eq!(report.unwrap().session_count.total, 2);
        }
        "sessions" => {
            for sort in [SessionSort::Bytes, SessionSort::LastUsed] {
                let query = SessionQuery { sort, ..SessionQuery::default() };
                let listed = ReadDatabase::with::<_, ReadError>(path, |database| {
                    sessions::collect(database, &query, &Unobserved)
                });
                assert_eq!(listed.unwrap().0.len(), 2);
            }
        }
        "search session" => {
            let sessions = vec![SessionId::new("ses_b").unwrap()];
            assert_eq!(found(&SearchOptions { sessions, ..everything() }), 1);
        }
        "search content" => assert_eq!(found(&SearchOptions::default()), 1),
        other => panic!("{other} is not a reading"),
    }
    println!("read what was asked for");
}
