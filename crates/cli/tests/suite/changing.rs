//! `prune`, `rebuild` and `undo`: the plan first, nothing without a confirmation, and what is left afterwards.

use std::fs;
use std::path::Path;

use headwater_testkit::fixture::Fixture;
use headwater_testkit::sqlite3::Shell;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::folder::Contents;
use crate::program::{Run, command, run};
use crate::scene::{self, CANARY};
use crate::scrub::scrubbed;

/// A folder with the scene in it, and runs on that.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        scene::database(home.path());
        Self { home }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        run(self.home.path(), arguments.iter().chain(&["--db", "opencode.db"]))
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    /// Everything that every session shows.
    fn shown(&self) -> Vec<Vec<Value>> {
        let sessions = ["ses_a", "ses_child", "ses_hostile", "ses_v2"];
        sessions
            .map(|session| {
                self.run(&["show", session, "--technical", "--json"]).expect_status(0).json_lines()
            })
            .into()
    }
}

const ITEMS: [&str; 8] = ["prune", "--message", "msg_a_2", "--index", "0", "--index", "1", "--json"];

fn revision(place: &Place) -> String {
    let preview = place.run(&["preview", "--message", "msg_a_2", "--json"]).expect_status(0).json();
    preview["result"]["revision"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_confirmation_the_plan_is_shown_and_nothing_changes() {
    let place = Place::new();
    let before = Contents::of(place.path());
    for arguments in [&["prune", "--class", "events"][..], &["rebuild", "--class", "events"], &ITEMS[..7]] {
        let refused = place.run(arguments).expect_status(2);
        assert!(!refused.stdout.is_empty(), "{arguments:?}");
        assert!(
            refused.stderr.contains("nothing was changed") && refused.stderr.contains("--yes"),
            "{}",
            refused.stderr
        );
        let json = place.run(&[arguments, &["--json"]].concat()).expect_status(2);
        assert_eq!(json.json_lines().len(), 2, "{arguments:?}");
        assert_eq!(json.json()["error"]["code"], "not-confirmed", "{arguments:?}");
        assert_eq!(Contents::of(place.path()), before, "{arguments:?}");
    }
}

#[test]
fn a_prune_by_class_has_the_documented_shape_and_keeps_every_text() {
    let place = Place::new();
    let arguments =
        ["prune", "--class", "events", "--class", "technical", "--newest-turn", "--yes", "--json"];
    let lines = place.run(&arguments).expect_status(0).json_lines();
    assert_json_snapshot!("prune_classes", scrubbed(lines, &["locks", "space"]));
    let texts = place
        .shown()
        .concat()
        .into_iter()
        .flat_map(|line| line["message"]["items"].as_array().cloned().unwrap_or_default());
    let kinds: Vec<_> = texts.map(|item| item["kind"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "text").count(), 7, "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind == "tool" || kind == "reasoning"), "{kinds:?}");
    assert_eq!(place.run(&arguments).expect_status(4).json()["result"]["classes"], json!({}));
    place.run(&["check"]).expect_status(0);
}

#[test]
fn the_same_request_again_has_the_same_receipt() {
    let place = Place::new();
    let seen = revision(&place);
    let request = [&ITEMS[..], &["--revision", &seen, "--yes"]].concat();
    let receipt = place.run(&request).expect_status(0).json();
    assert_json_snapshot!("prune_message", scrubbed(receipt.clone(), &["time"]));
    assert_eq!(place.run(&request).expect_status(0).json(), receipt);
    let other = [&ITEMS[..5], &["--json", "--revision", &seen, "--yes"]].concat();
    assert_eq!(place.run(&other).expect_status(3).json()["error"]["code"], "conflict");
}

#[test]
fn requests_that_name_nothing_removable_are_refused() {
    let place = Place::new();
    let seen = revision(&place);
    let before = fs::read(place.path().join("opencode.db")).unwrap();
    let message = ["prune", "--message", "msg_a_2", "--yes", "--json"];
    for (arguments, status, code) in [
        (&["--revision", &seen, "--index", "2"][..], 3, "not_deletable"),
        (&["--revision", &seen, "--index", "77"], 3, "not_deletable"),
        (&["--revision", &seen], 2, "usage"),
        (&["--index", "0"], 2, "usage"),
        (&["--revision", &seen, "--index", "0", "--index", "0"], 2, "usage"),
        (&["--revision", &seen, "--index", "100001"], 2, "usage"),
        (&["--revision", "abc", "--index", "0"], 2, "usage"),
        (&["--revision", &"0".repeat(64), "--index", "0"], 3, "conflict"),
    ] {
        let refused = place.run(&[&message[..], arguments].concat()).expect_status(status);
        assert_eq!(refused.json()["error"]["code"], code, "{arguments:?}");
        assert!(!refused.stderr.contains(CANARY));
    }
    assert!(fs::read(place.path().join("opencode.db")).unwrap() == before);
}

#[test]
fn an_undo_puts_back_what_the_archive_holds() {
    let place = Place::new();
    let before = place.shown();
    let prune = ["prune", "--class", "technical", "--newest-turn", "--archive", "removed.zst", "--yes"];
    place.run(&prune).expect_status(0);
    assert_ne!(place.shown(), before);
    let undo = ["undo", "--archive", "removed.zst", "--json"];
    assert_eq!(place.run(&undo).expect_status(2).json()["error"]["code"], "not-confirmed");
    let report = place.run(&[&undo[..], &["--yes"]].concat()).expect_status(0).json();
    assert_json_snapshot!("undo", scrubbed(report, &["locks"]));
    assert_eq!(place.shown(), before);
    place.run(&[&undo[..], &["--yes"]].concat()).expect_status(4);
}

#[test]
fn an_undo_says_what_the_archive_holds_before_it_asks() {
    let place = Place::new();
    let prune = ["prune", "--class", "technical", "--class", "events", "--newest-turn", "--yes"];
    place.run(&[&prune[..], &["--archive", "removed.zst"]].concat()).expect_status(0);
    let undo = ["undo", "--archive", "removed.zst"];
    let lines = place.run(&[&undo[..], &["--json"]].concat()).expect_status(2).json_lines();
    let plan = &lines[0]["plan"];
    assert_json_snapshot!("undo_plan", plan);
    let asked = place.run(&undo).expect_status(2);
    assert!(asked.stdout.contains(&format!("holds {} rows in {} units", plan["rows"], plan["units"])));
    assert!(asked.stdout.contains("technical") && asked.stdout.contains("events"), "{}", asked.stdout);
    let restored = place.run(&[&undo[..], &["--json", "--yes"]].concat()).expect_status(0).json();
    assert_eq!(restored["result"]["rows_restored"], plan["rows"], "all of it");
}

#[test]
fn what_is_no_archive_of_this_database_is_refused_before_anybody_is_asked() {
    let place = Place::new();
    let prune = ["prune", "--class", "technical", "--newest-turn", "--archive", "other.zst", "--yes"];
    let other = Place::new();
    let db = Fixture::reopen(other.path().join("opencode.db"));
    db.sql("CREATE TABLE IF NOT EXISTS migration (id text PRIMARY KEY, time_completed integer NOT NULL)");
    db.sql("INSERT INTO migration (id, time_completed) VALUES ('made at another time', 1)");
    db.close();
    other.run(&prune).expect_status(0);
    let whole = fs::read(other.path().join("other.zst")).unwrap();
    for (name, content, status, code) in [
        ("text.zst", b"this is no archive".as_slice(), 5, "not-an-archive"),
        ("empty.zst", b"", 5, "not-an-archive"),
        ("other.zst", &whole, 3, "other-database"),
    ] {
        fs::write(place.path().join(name), content).unwrap();
        let before = Contents::of(place.path());
        for confirmed in [&[][..], &["--yes"]] {
            let undo = [&["undo", "--archive", name, "--json"], confirmed].concat();
            let lines = place.run(&undo).expect_status(status).json_lines();
            assert_eq!((lines.len(), &lines[0]["error"]["code"]), (1, &json!(code)), "{name}");
        }
        assert_eq!(Contents::of(place.path()), before, "{name}");
    }
}

#[test]
fn a_plan_says_whether_the_archive_is_there_already() {
    let place = Place::new();
    let archive = ["--archive", "removed.zst"];
    let classes = |class| [&["prune", "--class", class, "--newest-turn", "--json"], &archive[..]].concat();
    let planned = |arguments: &[&str], line: &str| {
        let lines = place.run(arguments).json_lines();
        (lines[0][line]["archive"]["path"].clone(), lines[0][line]["archive"]["is_continued"].clone())
    };
    assert_eq!(planned(&classes("events"), "plan"), (json!("removed.zst"), json!(false)));
    assert_eq!(planned(&[&ITEMS[..], &archive].concat(), "preview"), (json!("removed.zst"), json!(false)));
    place.run(&[&classes("events")[..], &["--yes"]].concat()).expect_status(0);
    assert_eq!(planned(&classes("technical"), "plan"), (json!("removed.zst"), json!(true)));
    assert_eq!(planned(&[&ITEMS[..], &archive].concat(), "preview"), (json!("removed.zst"), json!(true)));
    let without = place.run(&["prune", "--class", "technical", "--json"]).json_lines();
    assert_eq!(without[0]["plan"]["archive"], Value::Null, "no archive, no word of it");
}

#[test]
fn one_of_a_thing_is_told_as_one() {
    let place = Place::new();
    let prune = ["prune", "--class", "technical", "--session", "ses_v2", "--newest-turn", "--yes"];
    place.run(&[&prune[..], &["--archive", "removed.zst"]].concat()).expect_status(0);
    let undone = place.run(&["undo", "--archive", "removed.zst", "--yes"]).expect_status(0);
    assert!(undone.stdout.contains("removed.zst holds 1 row in 1 unit, "), "{}", undone.stdout);
    assert!(undone.stdout.contains("\n1 row restored, in 1 of 1 unit\n"), "{}", undone.stdout);
    let seen = revision(&place);
    let items = ["prune", "--message", "msg_a_2", "--index", "1", "--revision", &seen, "--yes"];
    let pruned = place.run(&items).expect_status(0);
    assert!(pruned.stdout.contains("removed 1 tool call and 0 reasoning items, "), "{}", pruned.stdout);
}

#[test]
fn a_session_that_is_not_there_is_no_fault_of_the_database() {
    let place = Place::new();
    for verb in ["prune", "preview"] {
        let refused = place.run(&[verb, "--class", "technical", "--session", "ses_none"]).expect_status(2);
        assert!(refused.stderr.contains("error: no session with the id ses_none"), "{}", refused.stderr);
    }
}

#[test]
fn a_plan_says_whether_what_is_removed_is_added_to_an_archive() {
    let place = Place::new();
    let prune = |class| ["prune", "--class", class, "--newest-turn", "--archive", "removed.zst"];
    let first = place.run(&prune("technical")).expect_status(2).stdout;
    assert!(first.contains("first written into the new archive removed.zst"), "{first}");
    place.run(&[&prune("technical")[..], &["--yes"]].concat()).expect_status(0);
    let second = place.run(&prune("events")).expect_status(2).stdout;
    assert!(second.contains("first added to the archive removed.zst"), "{second}");
}

#[test]
fn a_rebuild_has_the_documented_shape_and_leaves_one_file() {
    let place = Place::new();
    let before = place.shown();
    let rebuild = ["rebuild", "--class", "events", "--yes", "--json"];
    let lines = place.run(&rebuild).expect_status(0).json_lines();
    let mut report = lines[1].clone();
    let tables = report["result"]["tables"].as_array_mut().unwrap();
    tables.retain(|table| table["table"] == "event");
    let measured =
        ["forecast", "path", "bytes_before", "bytes_after", "locked_ms", "seconds", "read_bytes", "way"];
    assert_json_snapshot!("rebuild", scrubbed(vec![lines[0].clone(), report], &measured));
    assert_eq!(place.shown(), before);
    let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["opencode.db"]);
    assert_eq!(place.run(&rebuild).expect_status(4).json()["error"]["code"], "nothing-to-gain");
}

#[test]
fn a_rebuild_names_who_has_the_database_open() {
    let place = Place::new();
    let shell = Shell::open(&place.path().join("opencode.db"));
    let before = fs::read(place.path().join("opencode.db")).unwrap();
    let refused = place.run(&["rebuild", "--class", "events", "--yes"]).expect_status(3);
    assert!(refused.stderr.contains(&format!("pid {}", shell.pid())), "{}", refused.stderr);
    assert!(fs::read(place.path().join("opencode.db")).unwrap() == before);
}

#[test]
fn receipts_hold_no_content() {
    let place = Place::new();
    place
        .run(&["prune", "--class", "technical", "--newest-turn", "--yes", "--state", "state"])
        .expect_status(0);
    let files: Vec<_> =
        fs::read_dir(place.path().join("state")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()), "{}", file.display());
    }
}

/// A log that was not there before is nobody's but ours; one that another program uses is its own.
#[test]
fn a_prune_and_an_undo_leave_nothing_beside_a_database_that_nobody_else_has_open() {
    let place = Place::new();
    let beside = || -> Vec<String> {
        let names = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.starts_with("opencode.db"));
        names.sort();
        names
    };
    let prune = ["prune", "--class", "technical", "--newest-turn", "--archive", "removed.zst", "--yes"];
    let undo = ["undo", "--archive", "removed.zst", "--yes"];
    assert_eq!(beside(), ["opencode.db"]);
    for arguments in [&prune[..], &undo] {
        place.run(arguments).expect_status(0);
        assert_eq!(beside(), ["opencode.db"], "{arguments:?}");
    }
    let mut other = Shell::open(&place.path().join("opencode.db"));
    other.run("SELECT count(*) FROM session;");
    for arguments in [&prune[..], &undo] {
        place.run(arguments).expect_status(0);
        assert_eq!(beside(), ["opencode.db", "opencode.db-shm", "opencode.db-wal"], "{arguments:?}");
    }
}

#[test]
fn a_vacuum_keeps_its_copy_beside_the_database_and_out_of_the_temporary_folder() {
    let place = Place::new();
    // More than SQLite keeps in memory.
    Shell::open(&place.path().join("opencode.db")).run(
        "CREATE TABLE ballast (x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO ballast SELECT randomblob(8000) FROM n;
         DELETE FROM ballast WHERE rowid % 10 = 0;",
    );
    let temporary = tempfile::tempdir().unwrap();
    let touched = || fs::metadata(temporary.path()).unwrap().modified().unwrap();
    let before = touched();
    let done = command(place.path())
        .args(["vacuum", "--yes", "--db", "opencode.db"])
        .env("SQLITE_TMPDIR", temporary.path())
        .status()
        .unwrap();
    assert!(done.success());
    // SQLite unlinks its temporary files at once; the folder remembers that there was one.
    assert_eq!(touched(), before);
}

#[test]
fn nothing_is_written_over_the_database_or_under_the_name_of_a_file_of_it() {
    let place = Place::new();
    std::os::unix::fs::symlink("opencode.db", place.path().join("link.db")).unwrap();
    let before = Contents::of(place.path());
    for name in ["opencode.db", "link.db", "./opencode.db-wal", "opencode.db-shm", "opencode.db-journal"] {
        for arguments in [
            &["export", "--all", "--force", "--output", name][..],
            &["export", "--all", "--output", name],
            &["backup", "--force", name],
            &["backup", name],
            &["salvage", name],
            &["prune", "--class", "technical", "--newest-turn", "--yes", "--archive", name],
        ] {
            let refused = place.run(arguments).expect_status(3);
            assert!(refused.stderr.contains("is the database"), "{arguments:?}: {}", refused.stderr);
            assert_eq!(Contents::of(place.path()), before, "{arguments:?}");
        }
    }
}

#[test]
fn what_is_no_file_is_not_replaced_even_where_a_file_may_be() {
    let place = Place::new();
    let pipe = place.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("pipe", place.path().join("link")).unwrap();
    let before = Contents::of(place.path());
    for name in ["pipe", "link"] {
        for arguments in [&["export", "--all", "--force", "--output", name][..], &["backup", "--force", name]]
        {
            place.run(arguments).expect_status(3);
            assert_eq!(Contents::of(place.path()), before, "{arguments:?}");
        }
    }
}
