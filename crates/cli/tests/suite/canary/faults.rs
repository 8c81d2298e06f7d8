//! Everything that can be refused, be damaged or fail.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::sync::Mutex;

use headwater_testkit::fixture::Fixture;
use headwater_testkit::program::find;
use headwater_testkit::sqlite3::Shell;

use super::scene::CONTENT;
use super::{ALL, Place, TALKATIVE, assert_discreet, has};
use crate::program::{self, Run};

#[test]
fn what_is_refused_is_refused_without_a_word_of_it() {
    let place = Place::new();
    let nothing = "0".repeat(64);
    for (arguments, status) in [
        (&["show", "ses_none"][..], 2),
        (&["show", "--message", "msg_none"], 2),
        (&["export", "ses_none"], 2),
        (&["preview", "--class", "events", "--session", "ses_none"], 2),
        (&["preview", "--message", "msg_a_1"], 4),
        (&["preview", "--message", "msg_a_4"], 4),
        (&["prune", "--message", "msg_a_2", "--index", "0", "--revision", &nothing, "--yes"], 3),
        (&["prune", "--message", "msg_a_4", "--index", "0", "--revision", &nothing, "--yes"], 3),
        (&["prune", "--message", "msg_live_2", "--index", "0", "--revision", &nothing, "--yes"], 3),
        (&["prune", "--class", "events"], 2),
        (&["rebuild", "--class", "events"], 2),
        (&["undo", "--archive", "none.zst", "--yes"], 1),
        (&["restore", "none.db", "--yes"], 1),
        (&["backup", "opencode.db"], 3),
        (&["backup", "no/such/folder.db"], 1),
        (&["search", ""], 2),
    ] {
        place.run(arguments, status);
    }
    // Changed between preview and prune.
    let preview = place.run(&["preview", "--message", "msg_c_2"], 0).json();
    let revision = preview["result"]["revision"].as_str().unwrap();
    let db = Fixture::reopen(place.database());
    db.sql("UPDATE part SET data = json_set(data, '$.more', 1) WHERE id = 'prt_c_9'");
    db.close();
    place.run(&["prune", "--message", "msg_c_2", "--index", "0", "--revision", revision, "--yes"], 3);
    // Archives and receipts that are none, while there is something to remove.
    place.once(&["prune", "--class", "compacted", "--archive", "removed.zst", "--yes"], 0);
    let archive = fs::read(place.path().join("removed.zst")).unwrap();
    for (name, bytes, status) in [
        ("torn.zst", &archive[..archive.len() - 30], 0),
        ("garbled.zst", &[&archive[..400], b"garbled", &archive[407..]].concat(), 5),
        ("other.zst", b"no archive at all", 5),
    ] {
        fs::write(place.path().join(name), bytes).unwrap();
        place.once(&["undo", "--archive", name, "--yes", "--json"], 5);
        place.once(&["undo", "--archive", name, "--yes", "--accept-torn"], status);
        if status == 5 {
            place.once(&[&["prune", "--archive", name], &ALL[..]].concat(), 5);
        }
    }
    fs::create_dir(place.path().join("bad")).unwrap();
    fs::write(place.path().join("bad/receipts.db"), "no receipts").unwrap();
    place.once(&[&["prune", "--state", "bad"], &ALL[..]].concat(), 5);
    // An undo of rows that somebody has written since.
    place.once(&[&["prune", "--archive", "removed.zst"], &ALL[..]].concat(), 0);
    let db = Fixture::reopen(place.database());
    db.sql("UPDATE part SET data = json_set(data, '$.more', 2)");
    db.sql("UPDATE message SET data = json_set(data, '$.more', 2)");
    db.sql("UPDATE session_message SET data = json_set(data, '$.more', 2)");
    db.close();
    place.says(&["undo", "--archive", "removed.zst", "--yes", "--json"]);
    place.assert_files_are_discreet(&[]);
}

#[test]
fn rows_that_make_no_sense_are_not_quoted() {
    let place = Place::new();
    let db = Fixture::reopen(place.database());
    db.sql("PRAGMA foreign_keys = off");
    let values = [
        format!("{{\"{CONTENT}"),
        CONTENT.to_owned(),
        format!("[\"{CONTENT}\"]"),
        format!("{{\"type\":\"hologram\",\"role\":\"oracle\",\"more\":\"{CONTENT}\"}}"),
        format!("{{\"type\":7,\"role\":{{}},\"text\":\"{CONTENT}\"}}"),
        format!(
            "{{\"type\":\"tool\",\"tool\":\"bash\",\"state\":{{\"status\":\"{CONTENT}\",\"input\":\"{CONTENT}\"}}}}"
        ),
        format!("{{\"type\":\"tool\",\"tool\":\"bash\",\"state\":\"{CONTENT}\"}}"),
        format!("{{\"type\":\"text\",\"text\":[\"{CONTENT}\"]}}"),
        format!("{{\"type\":\"text\",\"text\":\"{CONTENT}\",\"text\":\"{CONTENT} twice\"}}"),
        format!("{{\"role\":\"assistant\",\"time\":\"{CONTENT}\",\"summary\":{{\"diffs\":\"{CONTENT}\"}}}}"),
        format!(
            "{{\"role\":\"assistant\",\"time\":{{\"created\":\"{CONTENT}\",\"completed\":\"{CONTENT}\"}}}}"
        ),
        format!(
            "{{\"content\":[{{\"type\":\"hologram\",\"more\":\"{CONTENT}\"}},\"{CONTENT}\",{{\"type\":\"tool\",\"state\":\"{CONTENT}\"}}]}}"
        ),
        format!("{{\"text\":\"\\ud800 {CONTENT}\"}}"),
        format!("{{\"{CONTENT}\":1e999,\"a\":{CONTENT}}}"),
    ];
    for (number, value) in (1_i64..).zip(&values) {
        db.message(&format!("msg_odd_{number}"), "ses_a", 1_700_000_000_000, value);
        db.part(&format!("prt_odd_{number}"), &format!("msg_odd_{number}"), "ses_a", value);
        db.part(&format!("prt_in_{number}"), "msg_c_2", "ses_child", value);
        db.event("ses_a", "message.part.updated.1", value);
        db.event("ses_a", "message.updated.1", value);
        db.session_message(&format!("msg_odd2_{number}"), "ses_v2", "assistant", 100 + number, 1, value);
    }
    db.sql(&format!(
        "UPDATE session SET time_updated = '{CONTENT}', permission = '{CONTENT}' WHERE id = 'ses_full'"
    ));
    db.sql(&format!("INSERT INTO kv VALUES ('plugin:headwater', '{CONTENT}', 1, 1)"));
    db.close();
    for arguments in [
        &["stats", "--exact"][..],
        &["sessions"],
        &["check"],
        &["preview", "--class", "events", "--class", "technical", "--class", "metadata", "--exact"],
        &["preview", "--class", "sessions", "--older-than", "1d"],
        &["preview", "--message", "msg_c_2"],
        &["preview", "--message", "msg_odd_3"],
        &["preview", "--message", "msg_odd2_12"],
        &["salvage", "saved.db"],
        &["backup", "copy.db"],
        &[
            "rebuild",
            "--class",
            "metadata",
            "--class",
            "diffs",
            "--class",
            "superseded-events",
            "--force",
            "--yes",
        ],
        &["retention", "plan"],
    ] {
        place.says(&[arguments, &["--json"]].concat());
        place.says(arguments);
    }
    place.says(&[&["prune", "--archive", "removed.zst", "--json"], &ALL[..]].concat());
    place.says(&["undo", "--archive", "removed.zst", "--yes"]);
    place.assert_files_are_discreet(&["saved.db", "copy.db"]);
}

#[test]
fn a_damaged_file_is_not_quoted() {
    let sound = Place::new();
    let bytes = fs::read(sound.database()).unwrap();
    // Pages with text, an index, the schema: each damaged alone.
    let pages: Vec<usize> = (0..bytes.len() / 4096).collect();
    for page in pages.iter().step_by(1 + pages.len() / 7) {
        let place = Place { home: tempfile::tempdir().unwrap(), verbs: Mutex::default() };
        fs::write(place.database(), &bytes).unwrap();
        let file = fs::File::options().write(true).open(place.database()).unwrap();
        let garbage = CONTENT.repeat(4096 / CONTENT.len() + 1);
        file.write_all_at(&garbage.as_bytes()[..3900], (page * 4096 + 60) as u64).unwrap();
        drop(file);
        for arguments in [
            &["stats", "--exact"][..],
            &["sessions"],
            &["check"],
            &["preview", "--class", "events", "--class", "technical", "--exact"],
            &["prune", "--class", "events", "--class", "technical", "--yes"],
            &["rebuild", "--force", "--yes"],
            &["vacuum", "--force", "--yes"],
            &["backup", "copy.db"],
            &["salvage", "saved.db"],
        ] {
            place.says(&[arguments, &["--json"]].concat());
        }
        for arguments in
            [&["show", "ses_a"][..], &["search", "tests ran", "--technical"], &["export", "--all"]]
        {
            place.says(arguments);
        }
        place.assert_files_are_discreet(&["copy.db", "saved.db"]);
    }
}

/// Runs a verb with every write beyond `blocks` of 512 bytes failing, as on a full disk.
fn says_on_full_disk(place: &Place, blocks: u32, arguments: &[&str]) -> Run {
    let mut command = std::process::Command::new(find("sh", "package dash on Debian and Ubuntu"));
    command
        .args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"", "sh", &blocks.to_string()])
        .arg(program::path())
        .args(arguments)
        .args(["--db", "opencode.db", "--json"])
        .env_clear()
        .envs(TALKATIVE)
        .envs([("HOME", place.path().as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())])
        .current_dir(place.path())
        .stdin(Stdio::null());
    let run: Run = command.output().unwrap().into();
    assert_discreet(arguments, &run);
    run
}

#[test]
fn a_full_disk_is_reported_without_what_did_not_fit() {
    let mut failed = 0;
    for blocks in [0, 8, 40, 200] {
        let place = Place::new();
        for arguments in [
            &["export", "--all", "--output", "all.jsonl"][..],
            &["backup", "copy.db"],
            &["salvage", "saved.db"],
            &["rebuild", "--class", "events", "--yes"],
            &["rebuild", "--class", "events", "--in-place", "--yes"],
            &[&["prune", "--archive", "removed.zst"], &ALL[..]].concat(),
            &["vacuum", "--force", "--yes"],
        ] {
            failed += u32::from(says_on_full_disk(&place, blocks, arguments).status == 1);
        }
        place.assert_files_are_discreet(&["copy.db", "saved.db", "all.jsonl"]);
    }
    assert!(failed > 8, "only {failed} runs failed");
}

#[test]
fn somebody_elses_lock_is_reported_without_content() {
    let place = Place::new();
    let mut shell = Shell::open(&place.database());
    shell.run(&format!("BEGIN IMMEDIATE; UPDATE session SET title = '{CONTENT}' WHERE id = 'ses_a';"));
    for (arguments, status) in [
        (&[&["prune"], &ALL[..]].concat()[..], 3),
        (&["rebuild", "--class", "events", "--yes"], 3),
        (&["vacuum", "--force", "--yes"], 3),
        (&["locate"], 0),
        (&["stats"], 0),
    ] {
        let refused = place.says(&[arguments, &["--json"]].concat());
        assert_eq!(refused.status, status, "{arguments:?}: {refused:?}");
    }
    drop(shell);
    place.assert_files_are_discreet(&[]);
}

#[test]
fn an_interrupted_search_tells_what_it_found_and_nothing_on_the_way_out() {
    let place = Place::new();
    let db = Fixture::reopen(place.database());
    db.transaction(|db| {
        for number in 0..400 {
            let text = format!("{CONTENT} {}", "long ".repeat(60));
            let data = headwater_testkit::fixture::part::text(&text);
            db.part(&format!("prt_many_{number:03}"), "msg_a_2", "ses_a", &data);
        }
    });
    db.close();
    let mut child = program::command(place.path())
        .args(["search", CONTENT, "--json", "--limit", "100000", "--db", "opencode.db"])
        .envs(TALKATIVE)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut found = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    found.read_line(&mut first).unwrap();
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("stopping") {
        assert_ne!(told.read_line(&mut line).unwrap(), 0, "nothing was told");
    }
    let mut rest = String::new();
    found.read_to_string(&mut rest).unwrap();
    told.read_to_string(&mut line).unwrap();
    assert!(!has(line.as_bytes(), CONTENT), "{line}");
    assert!(!child.wait().unwrap().success());
    let last = rest.lines().last().unwrap();
    assert!(last.contains("cancelled") && !has(last.as_bytes(), CONTENT), "{last}");
}
