//! `stats`, `sessions`, `show`, `search` and `check`: shapes, order, and text that tries to take the terminal over.

use insta::assert_json_snapshot;

use crate::program::{Run, run};
use crate::scene::{self, CANARY, HOSTILE};
use crate::scrub::scrubbed;

fn reading(arguments: &[&str]) -> Run {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    run(home.path(), arguments.iter().chain(&["--db", "opencode.db"]))
}

#[test]
fn stats_have_the_documented_shape() {
    let report = reading(&["stats", "--json", "--exact"]).expect_status(0).json();
    let mut report = report;
    // Which bucket is filled depends on the day; the tables and indexes of a layout belong to the tests of the library.
    for list in ["ages", "tables", "indexes"] {
        report["result"][list].as_array_mut().unwrap().truncate(1);
    }
    report["result"]["database"]["holders"] = "who has it open, as locate says".into();
    let measured = ["path", "bytes", "page_count", "page_bytes", "ages"];
    assert_json_snapshot!("stats", scrubbed(report, &measured));
    let shown = reading(&["stats"]).expect_status(0).stdout;
    assert!(shown.contains("superseded-events") && !shown.contains(CANARY), "{shown}");
}

#[test]
fn sessions_have_the_documented_shape() {
    assert_json_snapshot!("sessions", reading(&["sessions", "--json"]).expect_status(0).json_lines());
}

#[test]
fn messages_have_the_documented_shape() {
    let shown = reading(&["show", "ses_a", "--technical", "--json"]).expect_status(0);
    assert_json_snapshot!("show_1x", shown.json_lines());
    let shown = reading(&["show", "--message", "msg_v2_2", "--json"]).expect_status(0);
    assert_json_snapshot!("show_2x", shown.json_lines());
}

#[test]
fn hits_have_the_documented_shape_and_none_is_status_4() {
    let found = reading(&["search", "UPLOADS", "--json"]).expect_status(0);
    assert_json_snapshot!("search", found.json_lines());
    let none = reading(&["search", "no such text", "--json"]).expect_status(4).json();
    assert_eq!(none["result"]["hits"], 0);
    reading(&["search", CANARY, "--session", "ses_v2"]).expect_status(4);
    reading(&["search", ""]).expect_status(2);
    reading(&["search", &"x".repeat(1001)]).expect_status(2);
}

#[test]
fn a_check_has_the_documented_shape_and_an_undecodable_row_is_status_5() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let check = || run(home.path(), ["check", "--json", "--db", "opencode.db"]);
    let sound = check().expect_status(0).json();
    assert_json_snapshot!("check", scrubbed(sound, &["path", "bytes", "pages"]));
    let db = headwater_testkit::fixture::Fixture::reopen(&path);
    db.sql("UPDATE part SET data = '{' WHERE id = 'prt_a_1'");
    db.close();
    let broken = check().expect_status(5).json();
    assert_eq!(broken["result"]["findings"][0]["code"], "undecodable-row");
    let shown = run(home.path(), ["check", "--db", "opencode.db"]).expect_status(5).stdout;
    assert!(shown.contains("undecodable-row") && !shown.contains(CANARY), "{shown}");
}

#[test]
fn lists_are_filtered_and_ordered() {
    let ids = |arguments: &[&str]| {
        let lines = reading(&[&["sessions", "--json"], arguments].concat()).expect_status(0).json_lines();
        let ids = lines.iter().filter_map(|line| line["session"]["id"].as_str().map(str::to_owned));
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["ses_a", "ses_child", "ses_hostile", "ses_v2"]);
    assert_eq!(ids(&["--roots", "--limit", "2"]), ["ses_a", "ses_hostile"]);
    reading(&["sessions", "--project", "unknown"]).expect_status(4);
}

#[test]
fn stored_text_cannot_move_the_terminal() {
    for arguments in [
        &["sessions"][..],
        &["sessions", "--json"],
        &["show", "ses_hostile"],
        &["show", "ses_hostile", "--json"],
        &["search", "evil"],
        &["stats"],
    ] {
        let shown = reading(arguments).expect_status(0).stdout;
        let is_active =
            |character: char| character.is_control() && character != '\n' || character == '\u{202e}';
        assert!(!shown.contains(is_active), "{arguments:?}: {shown:?}");
    }
    let title = &reading(&["sessions", "--json"]).json_lines()[2]["session"]["title"];
    assert_eq!(title, HOSTILE, "JSON reads back as stored");
}

#[test]
fn what_does_not_exist_is_named_without_content() {
    for (arguments, code) in [
        (&["show", "ses_none"][..], "unknown-session"),
        (&["show", "--message", "msg_none"], "unknown-message"),
        (&["show"], "usage"),
        (&["show", "ses_a", "--message", "msg_a_1"], "usage"),
    ] {
        let refused = reading(&[arguments, &["--json"]].concat()).expect_status(2);
        assert_eq!(refused.json()["error"]["code"], code, "{arguments:?}");
        assert!(!refused.stderr.contains(CANARY), "{arguments:?}");
    }
}

#[test]
fn a_long_text_is_cut_and_shown_whole_on_request() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let long = format!("{}\u{1b}[2Jend", "long line\n".repeat(30_000));
    let db = headwater_testkit::fixture::Fixture::reopen(&path);
    db.part("prt_a_9", "msg_a_2", "ses_a", &headwater_testkit::fixture::part::text(&long));
    db.close();
    let shown = |arguments: &[&str]| {
        run(home.path(), arguments.iter().chain(&["--db", "opencode.db"])).expect_status(0).stdout
    };
    let cut = shown(&["show", "ses_a"]);
    assert!(cut.len() < 40_000 && cut.contains("--full shows all"), "{} bytes", cut.len());
    let full = shown(&["show", "ses_a", "--full"]);
    assert!(full.contains(&long.replace('\u{1b}', "\\u{1b}")));
}
