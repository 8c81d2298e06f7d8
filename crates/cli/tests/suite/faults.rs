//! Faults met in the middle of a change: damage that nobody had read before, a file that may not grow, a write that was cut off.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headwater_testkit::fixture::{FileOptions, Fixture, Layout, NOW, Session, part, side_file};
use headwater_testkit::measure;
use headwater_testkit::rows::Rows;

use crate::folder::Contents;
use crate::program::{self, Run, run};

fn on(home: &Path, arguments: &[&str]) -> Run {
    run(home, arguments.iter().chain(&["--db", "opencode.db", "--json"]))
}

/// The same where no file may be written beyond `bytes`.
fn within(bytes: u64, home: &Path, arguments: &[&str]) -> Run {
    let mut command = measure::with_file_limit(&program::path(), bytes);
    command.env_clear().env("HOME", home).env("TZ", "UTC").env("PATH", "/usr/bin:/bin").current_dir(home);
    let output = command.args(arguments).args(["--db", "opencode.db", "--json"]).output();
    output.expect("the program starts").into()
}

fn checked(home: &Path) {
    let answer = Fixture::reopen(home.join("opencode.db")).text("PRAGMA integrity_check(1)");
    assert_eq!(answer, "ok");
}

/// Two sessions, each with a finished tool call whose output is longer than a plan reads, and one with a turn behind it.
fn with_long_outputs(home: &Path) -> PathBuf {
    let db = Fixture::create(home.join("opencode.db"), Layout::V1);
    for letter in ["a", "b"] {
        let session = format!("ses_{letter}");
        db.session(&Session::named(&session));
        let id = |kind: &str, number: u8| format!("{kind}_{letter}_{number}");
        db.user(&id("msg", 1), &session);
        db.part(&id("prt", 1), &id("msg", 1), &session, &part::text("please"));
        db.assistant(&id("msg", 2), &session);
        db.part(&id("prt", 2), &id("msg", 2), &session, &part::reasoning("let me look"));
        db.part(
            &id("prt", 3),
            &id("msg", 2),
            &session,
            &part::bash("call_1", &"a long line of output ".repeat(40_000)),
        );
        db.part(&id("prt", 4), &id("msg", 2), &session, &part::text("done"));
    }
    db.close()
}

/// Breaks the chain of pages of one output in its middle: its beginning and its length read as before.
fn break_output(path: &Path, part: &str) {
    let db = Fixture::reopen(path);
    let chain = format!(
        "SELECT pageno FROM dbstat WHERE name = 'part' AND pagetype = 'overflow' AND path LIKE \
           (SELECT substr(path, 1, instr(path, '+')) FROM dbstat WHERE name = 'part' AND pagetype = 'overflow' \
            ORDER BY path {order} LIMIT 1) || '%' ORDER BY path LIMIT 1 OFFSET 120",
        order = if part == "first" { "ASC" } else { "DESC" }
    );
    let page = db.integer(&chain);
    let bytes = db.integer("SELECT page_size FROM pragma_page_size");
    db.close();
    let offset = u64::try_from((page - 1) * bytes).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    // The number of the next page: none has it.
    file.write_all_at(&[0x7f, 0xff, 0xff, 0xf0], offset).unwrap();
}

#[test]
fn damage_that_only_the_prune_meets_ends_it_and_leaves_each_message_whole_or_untouched() {
    for archive in [&[][..], &["--archive", "removed.zst"]] {
        let home = tempfile::tempdir().unwrap();
        let path = with_long_outputs(home.path());
        break_output(&path, "last");
        let before = rows_of(&path);
        let prune = [&["prune", "--class", "technical", "--newest-turn", "--yes"], archive].concat();
        on(home.path(), &["preview", "--class", "technical", "--newest-turn"]).expect_status(0);
        let ended = on(home.path(), &prune).expect_status(5);
        assert_eq!(ended.json()["error"]["code"], "damaged", "{archive:?}: {}", ended.stdout);
        assert!(ended.json()["error"]["hint"].as_str().unwrap().contains("salvage"), "{}", ended.stdout);
        let after = rows_of(&path);
        // The damaged message has all of its parts; the other one lost what the plan named, or nothing.
        assert_eq!(after.1, before.1, "{archive:?}: the damaged message");
        assert!(after.0 == before.0 || after.0 == ["prt_a_1", "prt_a_4"], "{archive:?}: {:?}", after.0);
        assert_eq!(
            on(home.path(), &prune).expect_status(5).json()["error"]["code"],
            "damaged",
            "{archive:?}"
        );
        assert_eq!(rows_of(&path), after, "{archive:?}: again");
    }
}

/// Ids of the parts of both sessions; the damaged payload is not read.
fn rows_of(path: &Path) -> (Vec<String>, Vec<String>) {
    let db = Fixture::reopen(path);
    let of = |session: &str| {
        let sql = format!(
            "SELECT coalesce(group_concat(id, ' ' ORDER BY id), '') FROM part WHERE session_id = '{session}'"
        );
        db.text(&sql).split_whitespace().map(str::to_owned).collect()
    };
    let found = (of("ses_a"), of("ses_b"));
    db.close();
    found
}

/// Many rows, most of them events that were superseded.
fn with_events(home: &Path) -> PathBuf {
    let db = Fixture::create(home.join("opencode.db"), Layout::V1);
    db.session(&Session::named("ses_a"));
    db.user("msg_1", "ses_a");
    db.transaction(|db| {
        for number in 0..60 {
            let id = format!("prt_{number:02}");
            for round in 1..=12 {
                db.part_event("ses_a", "msg_1", &id, &part::text(&"word ".repeat(round * 90)));
            }
            db.part_at(&id, "msg_1", "ses_a", NOW, &part::text(&"word ".repeat(12 * 90)));
        }
    });
    db.close()
}

#[test]
fn a_limit_on_the_size_of_files_ends_a_prune_that_loses_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let path = with_events(home.path());
    let before = Rows::read(&path);
    let prune = ["prune", "--class", "superseded-events", "--yes"];
    let ended = within(256 << 10, home.path(), &prune).expect_status(1);
    assert_eq!(ended.json()["error"]["code"], "no-room", "{}", ended.stdout);
    checked(home.path());
    let lost = before.changes(&Rows::read(&path));
    assert!(lost.iter().all(|line| line.starts_with("event '") && line.ends_with(": gone")), "{lost:?}");
    on(home.path(), &prune).expect_status(0);
    let lost = before.changes(&Rows::read(&path));
    assert_eq!(lost.len(), 60 * 11, "the same command again does the rest");
}

#[test]
fn a_limit_on_the_size_of_files_ends_a_vacuum_and_a_backup_with_everything_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let path = with_events(home.path());
    let before = Rows::read(&path);
    let file = fs::read(&path).unwrap();
    let limit = file.len() as u64 / 2;
    for command in [&["vacuum", "--force", "--yes"][..], &["backup", "copy.db"]] {
        let ended = within(limit, home.path(), command).expect_status(1);
        assert_eq!(ended.json()["error"]["code"], "no-room", "{command:?}: {}", ended.stdout);
        assert_eq!(before.changes(&Rows::read(&path)), Vec::<String>::new(), "{command:?}");
        checked(home.path());
        let names: Vec<_> =
            fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let is_left = |name: &std::ffi::OsString| {
            let name = name.to_string_lossy();
            name.contains("copy") || Path::new(&*name).extension().is_some_and(|ending| ending == "tmp")
        };
        assert!(!names.iter().any(is_left), "{command:?}: {names:?}");
    }
    assert!(fs::read(&path).unwrap() == file, "not one byte of the file");
    on(home.path(), &["backup", "copy.db"]).expect_status(0);
}

/// A database in rollback-journal mode and the journal of a write that was cut off, as a killed process leaves them.
fn with_hot_journal(home: &Path) -> PathBuf {
    let live = tempfile::tempdir().unwrap();
    let options = FileOptions { wal: false, ..FileOptions::default() };
    let db = Fixture::create_with(live.path().join("opencode.db"), Layout::V1, options);
    db.session(&Session { title: "committed", ..Session::named("ses_a") });
    db.user("msg_1", "ses_a");
    for number in 0..100 {
        db.part(&format!("prt_{number}"), "msg_1", "ses_a", &part::text(&"word ".repeat(600)));
    }
    // So few pages are held that the others are written, behind a journal that is on the disk before.
    db.sql("PRAGMA synchronous = full; PRAGMA cache_size = 2; BEGIN");
    db.sql("UPDATE session SET title = 'half written'; UPDATE part SET data = '{\"type\":\"text\",\"text\":\"half\"}'");
    let path = home.join("opencode.db");
    for suffix in ["-journal", ""] {
        fs::copy(side_file(db.path(), suffix), side_file(&path, suffix)).unwrap();
    }
    let journal = fs::read(side_file(&path, "-journal")).unwrap();
    assert!(journal.len() > 100_000 && journal[0] == 0xd9, "a journal of {} bytes", journal.len());
    path
}

#[test]
fn a_restore_over_a_write_that_was_cut_off_leaves_no_journal_for_the_new_file() {
    for is_recognized in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let path = with_hot_journal(home.path());
        let other = tempfile::tempdir().unwrap();
        let db = Fixture::create(other.path().join("opencode.db"), Layout::V1);
        db.session(&Session::named("ses_snapshot"));
        db.close();
        on(other.path(), &["backup", "copy.db"]).expect_status(0);
        fs::copy(other.path().join("copy.db"), home.path().join("copy.db")).unwrap();
        if !is_recognized {
            fs::write(&path, "no database at all, and longer than the header of one ".repeat(40)).unwrap();
        }
        let (file, journal) = (fs::read(&path).unwrap(), fs::read(side_file(&path, "-journal")).unwrap());
        let before = Contents::of(home.path());
        on(home.path(), &["restore", "copy.db"]).expect_status(2);
        assert_eq!(Contents::of(home.path()), before, "not before it is confirmed");
        on(home.path(), &["restore", "copy.db", "--yes"]).expect_status(0);
        assert!(!side_file(&path, "-journal").exists(), "SQLite would play it into the new file");
        let db = Fixture::reopen(&path);
        assert_eq!(db.text("SELECT group_concat(id) FROM session"), "ses_snapshot");
        db.close();
        checked(home.path());
        let kept = home.path().join("opencode.db.before-restore-1");
        if is_recognized {
            // Rolled back to what was committed, or with its journal beside it, which any reader plays back.
            let db = Fixture::reopen(&kept);
            assert_eq!(db.text("SELECT title FROM session"), "committed");
            assert_eq!(db.integer("SELECT count(*) FROM part WHERE length(data) > 1000"), 100);
        } else {
            assert!(fs::read(&kept).unwrap() == file, "as it was");
            assert!(fs::read(side_file(&kept, "-journal")).unwrap() == journal, "with its journal");
        }
    }
}
