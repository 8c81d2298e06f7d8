//! Every verb, doing its job.

use std::collections::BTreeSet;
use std::fs;

use headwater_testkit::sqlite3::Shell;

use super::scene::{CONTENT, SECRET, TITLE};
use super::{ALL, Place, has};
use crate::program;

#[test]
fn no_verb_shows_what_is_not_its_job() {
    let place = Place::new();
    for (arguments, status) in [
        (&["locate"][..], 0),
        (&["stats"], 0),
        (&["stats", "--exact"], 0),
        (&["sessions"], 0),
        (&["show", "ses_a", "--technical", "--full"], 0),
        (&["show", "ses_v2", "--technical"], 0),
        (&["search", CONTENT, "--technical", "--events"], 0),
        (&["search", "uploads", "--technical"], 0),
        (&["search", "no such text"], 4),
        (
            &[
                "preview",
                "--class",
                "superseded-events",
                "--class",
                "sessions",
                "--older-than",
                "1d",
                "--exact",
            ],
            0,
        ),
        (&["preview", "--message", "msg_a_2"], 0),
        (&["preview", "--message", "msg_v_2"], 0),
        (&["check"], 5),
        (&["retention", "plan"], 0),
        (&["backup", "copy.db", "--force"], 0),
    ] {
        place.run(arguments, status);
    }
    place.once(&["salvage", "saved.db", "--json"], 0);
    place.once(&["salvage", "saved2.db"], 0);
    place.once(&["export", "--all", "--output", "all.jsonl"], 0);
    place
        .once(&["export", "--all", "--output", "all.md", "--format", "markdown", "--technical", "--json"], 0);
    place.once(&["export", "ses_a"], 0);
    for name in ["all.jsonl", "all.md"] {
        let exported = fs::read(place.path().join(name)).unwrap();
        assert!(has(&exported, CONTENT) && !has(&exported, SECRET), "{name}");
    }
    // The canaries stand where the eye of a user would meet them.
    assert!(has(place.says(&["show", "ses_a", "--technical", "--full"]).stdout.as_bytes(), CONTENT));
    assert!(has(place.says(&["sessions", "--json"]).stdout.as_bytes(), TITLE));
    place.once(&["prune", "--message", "msg_a_2", "--index", "0"], 2);
    prune_message(&place, "msg_a_2", "0");
    prune_message(&place, "msg_v_2", "1");
    place.once(&["rebuild", "--class", "superseded-events", "--yes", "--json"], 0);
    place.once(&["rebuild", "--force", "--yes"], 0);
    place.once(&[&["prune", "--archive", "removed.zst", "--json"], &ALL[..]].concat(), 0);
    place.once(&["undo", "--archive", "removed.zst", "--yes", "--json"], 0);
    place.once(&["undo", "--archive", "removed.zst", "--yes"], 4);
    place.once(&[&["prune"], &ALL[..]].concat(), 0);
    place.once(&["vacuum", "--yes", "--force", "--json"], 0);
    place.once(&["vacuum", "--yes", "--incremental"], 4);
    place.once(&["restore", "copy.db", "--yes", "--json"], 0);
    place.once(&["restore", "copy.db", "--yes"], 0);
    let policy = "enabled = true\nolder_than = \"1d\"\nclasses = [\"events\", \"technical\"]\n";
    fs::write(place.path().join("policy.toml"), policy).unwrap();
    place.once(&["retention", "plan", "--policy", "policy.toml"], 0);
    for status in [4, 0, 4] {
        place.once(&["retention", "run", "--policy", "policy.toml", "--yes", "--json"], status);
    }
    for arguments in [&["demo", "sample"][..], &["completions", "bash"], &["man"]] {
        place.once(arguments, 0);
    }
    let receipts = Shell::open(&place.database()).run("SELECT key, value FROM kv WHERE key LIKE 'plugin:%';");
    assert!(!has(receipts.as_bytes(), CONTENT) && !has(receipts.as_bytes(), TITLE), "{receipts}");
    place.assert_files_are_discreet(&["copy.db", "saved.db", "saved2.db", "all.jsonl", "all.md"]);
    assert_every_verb_was_run(&place);
}

/// Prunes an item as it was previewed.
fn prune_message(place: &Place, message: &str, index: &str) {
    let preview = place.run(&["preview", "--message", message], 0).json();
    let revision = preview["result"]["revision"].as_str().unwrap().to_owned();
    place.run(&["prune", "--message", message, "--index", index, "--revision", &revision, "--yes"], 0);
}

fn assert_every_verb_was_run(place: &Place) {
    let help = program::run(place.path(), ["--help"]).stdout;
    let listed = help.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let verbs =
        listed.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let verbs: BTreeSet<String> = verbs
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        // Conversation stores have scenes of their own (`conversation::discreet`).
        .filter(|verb| verb != "help" && verb != "conversation")
        .collect();
    assert!(verbs.len() > 15, "{help}");
    let run = place.verbs.lock().unwrap().clone();
    assert_eq!(verbs.difference(&run).collect::<Vec<_>>(), Vec::<&String>::new(), "verbs that were not run");
}
