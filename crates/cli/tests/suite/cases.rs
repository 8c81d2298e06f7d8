//! Situations that users reported, run through the program, with what is right for each.

use std::fs;
use std::path::Path;

use headwater_testkit::cases;
use headwater_testkit::fixture::{Fixture, side_file};
use headwater_testkit::measure;
use serde_json::{Value, json};

use crate::folder::Contents;
use crate::program::{self, Run, run};

fn on(folder: &Path, database: &Path, arguments: &[&str]) -> Run {
    run(folder, arguments.iter().copied().chain(["--json", "--db", database.to_str().unwrap()]))
}

#[test]
fn free_pages_without_auto_vacuum_are_not_said_to_be_freed() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::free_pages(folder.path());
    let before = fs::metadata(&case.path).unwrap().len();
    let done = on(folder.path(), &case.path, &["vacuum", "--incremental", "--yes"]).expect_status(4).json();
    assert_eq!(
        (&done["result"]["bytes_freed"], &done["result"]["nothing_freed"]),
        (&json!(0), &json!("auto-vacuum-off"))
    );
    assert_eq!(fs::metadata(&case.path).unwrap().len(), before);
    let stats = on(folder.path(), &case.path, &["stats"]).expect_status(0).json();
    assert_eq!(stats["result"]["database"]["free_pages"], case.free);
    let done = on(folder.path(), &case.path, &["rebuild", "--yes"]).expect_status(0).json();
    let after = fs::metadata(&case.path).unwrap().len();
    assert_eq!(
        (&done["result"]["bytes_before"], &done["result"]["bytes_after"]),
        (&json!(before), &json!(after))
    );
    assert!(after <= (case.pages - case.free + 8) * 4096, "{after} bytes");
}

#[test]
fn a_large_file_of_live_rows_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::compact_but_large(folder.path());
    let before = Contents::of(folder.path());
    for arguments in [&["rebuild", "--yes"][..], &["vacuum", "--yes"]] {
        let refused = on(folder.path(), &case.path, arguments).expect_status(4).json();
        assert_eq!(refused["error"]["code"], "nothing-to-gain", "{arguments:?}");
        assert_eq!(Contents::of(folder.path()), before, "{arguments:?}");
    }
    let stats = on(folder.path(), &case.path, &["stats"]).expect_status(0).json();
    assert_eq!(
        (&stats["result"]["database"]["free_bytes"], &stats["result"]["database"]["bytes"]),
        (&json!(0), &json!(case.bytes))
    );
}

#[test]
fn a_log_that_a_reader_pins_is_left_alone_until_the_reader_goes() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::pinned_log(folder.path());
    for arguments in [&["vacuum", "--force", "--yes"][..], &["rebuild", "--force", "--yes"]] {
        let refused = on(folder.path(), &case.path, arguments).expect_status(3);
        assert!(refused.stderr.contains(&format!("pid {}", case.reader.pid())), "{}", refused.stderr);
        assert_eq!(
            fs::metadata(side_file(&case.path, "-wal")).unwrap().len(),
            case.log_bytes,
            "{arguments:?}"
        );
    }
    let stats = on(folder.path(), &case.path, &["stats"]).expect_status(0).json();
    let log = &stats["result"]["database"]["log"];
    assert_eq!((&log["bytes"], &log["is_pinned"]), (&json!(case.log_bytes), &json!(true)), "{log}");
    drop(case.reader);
    on(folder.path(), &case.path, &["rebuild", "--force", "--yes"]).expect_status(0);
    assert!(!side_file(&case.path, "-wal").exists());
}

#[test]
fn a_huge_row_is_named_found_beside_and_not_read_for_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::huge_rows(folder.path(), 16);
    let stats = on(folder.path(), &case.path, &["stats"]).expect_status(0).json();
    let largest = stats["result"]["largest_rows"].as_array().unwrap();
    let named = |row: &Value| row["table"] == "message" && row["id"] == case.largest;
    let row = largest.iter().find(|row| named(row)).unwrap();
    assert_eq!((&row["session"], &row["bytes"]), (&json!("ses_big"), &json!(case.largest_bytes)));
    assert_eq!(largest.iter().filter(|row| row["table"] == "event").count() as u64, case.event_copies);
    on(folder.path(), &case.path, &["search", "npm install please"]).expect_status(0);
    let mut command = program::command(folder.path());
    let listed = measure::run(command.args(["sessions", "--json", "--db"]).arg(&case.path));
    assert!(listed.output.status.success(), "{listed:?}");
    assert!(listed.read_bytes < 4 << 20, "{} bytes read for a list", listed.read_bytes);
    assert!(listed.peak_bytes < 64 << 20, "{} bytes of memory", listed.peak_bytes);
}

#[test]
fn trees_go_and_stay_as_one_and_leave_no_row_without_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::session_tree(folder.path());
    let listed = |run: Run| {
        let lines = run.json_lines();
        let mut ids: Vec<_> =
            lines.iter().filter_map(|line| line["session"]["id"].as_str().map(str::to_owned)).collect();
        ids.sort_unstable();
        ids
    };
    // The day of the case lies in the past; what it counts from is the newest use.
    let db = Fixture::reopen(&case.path);
    let shift =
        "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 - (SELECT max(time_updated) FROM session) - 600000)";
    db.sql(&format!("UPDATE session SET time_updated = time_updated + {shift}"));
    db.close();
    let prune = ["prune", "--class", "sessions", "--older-than", "14d"];
    let planned = on(folder.path(), &case.path, &prune).json_lines();
    let kept: Vec<_> = planned[0]["plan"]["kept"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kept| (&kept["session"], &kept["reason"]))
        .collect();
    let named: Vec<_> = case.reported.iter().map(|id| json!(id)).collect();
    let broken = json!("broken-tree");
    assert_eq!(kept, named.iter().map(|id| (id, &broken)).collect::<Vec<_>>(), "each is reported");
    on(folder.path(), &case.path, &[&prune[..], &["--yes"]].concat()).expect_status(0);
    let left = listed(on(folder.path(), &case.path, &["sessions"]).expect_status(0));
    for id in case.goes.iter().filter(|id| !case.reported.contains(id)) {
        assert!(!left.iter().any(|found| found == id), "{id} stays: {left:?}");
    }
    for id in case.stays.iter().chain(&case.reported) {
        assert!(left.iter().any(|found| found == id), "{id} is gone: {left:?}");
    }
    // What has lost its parent follows its own last use, where that is asked for.
    let broken = [&prune[..], &["--broken-trees"]].concat();
    let planned = on(folder.path(), &case.path, &broken).expect_status(2).json_lines();
    assert_eq!(planned[0]["plan"]["totals"]["sessions"]["sessions"], 3, "idle: {planned:?}");
    let db = Fixture::reopen(&case.path);
    db.sql(
        "UPDATE session SET time_updated = (SELECT max(time_updated) FROM session) WHERE id = 'child_lost'",
    );
    db.close();
    on(folder.path(), &case.path, &[&broken[..], &["--yes"]].concat()).expect_status(0);
    let left = listed(on(folder.path(), &case.path, &["sessions"]).expect_status(0));
    assert_eq!(left, ["child_1", "child_lost", "grand_1", "root_1"], "in use, it stays");
    let db = Fixture::reopen(&case.path);
    for (table, column) in [("message", "session_id"), ("part", "session_id")] {
        let orphans = format!("SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM session)");
        assert_eq!(db.integer(&orphans), 0, "{table}");
    }
}
