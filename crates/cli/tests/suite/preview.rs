//! `headwater preview`.

use headwater_testkit::fixture::Fixture;
use insta::assert_json_snapshot;
use serde_json::json;

use crate::folder::Contents;
use crate::program::{Run, run};
use crate::scene;

fn preview(arguments: &[&str]) -> Run {
    let home = tempfile::tempdir().unwrap();
    scene::database(home.path());
    let before = Contents::of(home.path());
    let done = run(home.path(), ["preview", "--json", "--db", "opencode.db"].iter().chain(arguments));
    assert_eq!(Contents::of(home.path()), before, "{arguments:?}");
    done
}

#[test]
fn plans_and_messages_have_the_documented_shape() {
    let all = ["--class", "events", "--class", "technical", "--newest-turn", "--exact"];
    assert_json_snapshot!("preview_classes", preview(&all).expect_status(0).json());
    assert_json_snapshot!("preview_message", preview(&["--message", "msg_a_2"]).expect_status(0).json());
}

#[test]
fn what_makes_no_sense_is_refused_as_usage() {
    for (arguments, code) in [
        (&["--class", "unknown"][..], "usage"),
        (&[], "usage"),
        (&["--class", "events", "--session", "ses_none"], "unknown-session"),
        (&["--class", "events", "--pin", "ses_none"], "unknown-session"),
        (&["--class", "events", "--project", "none"], "unknown-project"),
        (&["--class", "events", "--older-than", "0d"], "usage"),
        (&["--class", "events", "--older-than", "999999999999y"], "usage"),
        (&["--class", "events", "--older-than", "500y"], "usage"),
        (&["--class", "events", "--keep-last", "0"], "usage"),
        (&["--class", "events", "--keep-last", "99999999999999999999"], "usage"),
        (&["--class", "events", "--session", ""], "usage"),
        (&["--class", "sessions"], "every-session"),
        (&["--message", "msg_none"], "unknown-message"),
        (&["--message", "msg_a_2", "--class", "events"], "usage"),
        (&["--message", "msg_a_2", "--older-than", "3d"], "usage"),
        (&["--message", "msg_a_2", "--session", "ses_a", "--session", "ses_v2"], "usage"),
    ] {
        let refused = preview(arguments).expect_status(2);
        assert_eq!(refused.json()["error"]["code"], code, "{arguments:?}");
    }
}

#[test]
fn an_index_that_names_a_row_which_is_gone_is_damage() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let db = Fixture::reopen(&path);
    db.sql(
        "PRAGMA writable_schema = ON;
         CREATE TEMP TABLE hidden AS SELECT rowid AS place, * FROM main.sqlite_schema WHERE type = 'index' AND tbl_name = 'event' AND sql IS NOT NULL;
         DELETE FROM main.sqlite_schema WHERE rowid IN (SELECT place FROM hidden);
         PRAGMA writable_schema = RESET;
         DELETE FROM event;
         PRAGMA writable_schema = ON;
         INSERT INTO main.sqlite_schema SELECT type, name, tbl_name, rootpage, sql FROM hidden;",
    );
    db.close();
    let before = Contents::of(home.path());
    for verb in [&["preview"][..], &["prune", "--yes"], &["rebuild", "--yes"]] {
        let arguments = ["--class", "superseded-events", "--json", "--db", "opencode.db"];
        let refused = run(home.path(), verb.iter().chain(&arguments)).expect_status(5);
        assert_eq!(refused.json_lines().last().unwrap()["error"]["code"], "damaged", "{verb:?}");
        assert_eq!(Contents::of(home.path()), before, "{verb:?}");
    }
}

#[test]
fn what_is_never_removed_is_nothing_to_do() {
    let user = preview(&["--message", "msg_a_1"]).expect_status(4).json();
    assert_eq!(user["result"]["blocked"]["reason"], "not_deletable");
    let done = preview(&["--class", "compacted"]).expect_status(4).json();
    assert_eq!(done["result"]["totals"]["compacted"]["bytes"], json!(0));
}

#[test]
fn a_message_of_another_session_is_not_there() {
    let refused = preview(&["--message", "msg_a_2", "--session", "ses_v2"]).expect_status(3);
    assert_eq!(refused.json()["error"]["code"], "unavailable");
}
