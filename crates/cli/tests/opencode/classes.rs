//! Every class, beside the running server, with the server stopped, and by a rebuild.

use headwater_testkit::opencode::{OpenCode, Options};
use headwater_testkit::rows::Rows;
use serde_json::json;

use crate::changes;
use crate::conversation;
use crate::family::Family;
use crate::headwater::{Headwater, find};
use crate::promise::CLASSES;
use crate::stats;
use crate::trial::{Control, Trial, Way};

/// What a rebuild drops in one pass: a class of whole rows in each table, and a class that rewrites rows.
const REBUILT: [&str; 3] = ["superseded-events", "diffs", "technical"];

#[test]
fn every_class_leaves_sessions_that_opencode_lists_exports_continues_forks_reverts_and_compacts() {
    let is_full = std::env::var_os("HEADWATER_TEST_FULL").is_some_and(|value| value == "1");
    let options = Options { context: 1_000_000, config: json!({"compaction": {"prune": true}}) };
    let mut opencode = OpenCode::start_with(&options);
    let headwater = Headwater::beside(&opencode);
    let session = conversation::write(&opencode);
    let control = opencode.fork(&session, None);
    let undone = opencode.fork(&session, None);
    let families = [Family::write(&opencode), Family::write(&opencode)];
    let mut trials = Vec::new();
    for way in [Way::Live, Way::Stopped] {
        trials.extend(CLASSES.map(|class| Trial::new(&opencode, &session, class, way)));
    }
    let rebuilt = if is_full { &CLASSES[..] } else { &["technical"] };
    for class in rebuilt {
        trials.push(Trial::new(&opencode, &session, class, Way::Rebuilt));
    }

    prune_beside_a_turn(&opencode, &headwater, of_way(&trials, Way::Live));
    families[0].remove(&opencode, &headwater, false);
    stats::assert_adds_up(&opencode, &headwater);
    opencode.stop();
    families[1].remove(&opencode, &headwater, true);
    for trial in of_way(&trials, Way::Stopped) {
        prune_alone(&opencode, &headwater, trial);
    }
    undo(&opencode, &headwater, &undone);
    for trial in of_way(&trials, Way::Rebuilt) {
        rebuild(&opencode, &headwater, trial);
    }
    stats::assert_adds_up(&opencode, &headwater);
    opencode.restart();

    for family in &families {
        family.assert_gone(&opencode);
    }
    let control = Control::of(&opencode, &control);
    for trial in &trials {
        trial.assert_continues(&opencode, &control);
        // The way makes no difference to what follows, so one of them stands for all where time is short.
        if is_full || trial.way != Way::Stopped {
            trial.assert_changes_course(&opencode);
        }
    }
    let whole = Trial { class: "diffs", way: Way::Stopped, session: undone };
    whole.assert_continues(&opencode, &control);
}

fn of_way(trials: &[Trial], way: Way) -> impl Iterator<Item = &Trial> {
    trials.iter().filter(move |trial| trial.way == way)
}

#[expect(
    clippy::print_stdout,
    reason = "the longest lock is reported, not judged: it depends on the machine"
)]
/// Prunes while a turn of another session writes and streams; the turn must not notice.
fn prune_beside_a_turn<'a>(
    opencode: &OpenCode,
    headwater: &Headwater,
    trials: impl Iterator<Item = &'a Trial>,
) {
    let bystander = opencode.new_session("bystander");
    opencode.say_async(&bystander, "watch [[tools=1 drip=2 out=4000 text=600 hold=middle]]");
    let mut longest_lock_us = 0;
    for trial in trials {
        let before = Rows::read(&opencode.database()).of_session(&trial.session);
        let result = headwater.run_when_settled(&[
            "prune",
            "--class",
            trial.class,
            "--session",
            &trial.session,
            "--yes",
        ]);
        let after = Rows::read(&opencode.database()).of_session(&trial.session);
        changes::assert_own(trial.class, &before, &after);
        let lock = find(&result, "longest_lock_us").and_then(serde_json::Value::as_u64);
        longest_lock_us = longest_lock_us.max(lock.unwrap_or_else(|| panic!("no lock report: {result}")));
    }
    assert!(opencode.is_busy(&bystander), "the turn ran all the time");
    println!("longest write lock beside a running turn: {longest_lock_us} us");
    opencode.provider().wait_held("middle");
    opencode.provider().release("middle");
    opencode.settle(&bystander);
    let messages = opencode.messages(&bystander);
    let parts = || messages.iter().flat_map(|message| message["parts"].as_array().unwrap());
    let tool = parts().find(|part| part["type"] == "tool").unwrap();
    assert_eq!(tool["state"]["status"], "completed");
    assert_eq!(tool["state"]["output"].as_str().unwrap().len(), 4000);
    let text = parts().rfind(|part| part["type"] == "text").unwrap();
    assert_eq!(text["text"].as_str().unwrap().len(), 600, "the whole answer");
    assert!(messages.iter().all(|message| message["info"]["error"].is_null()), "no error");
}

/// Prunes while nobody else writes: no row of another session changes either.
fn prune_alone(opencode: &OpenCode, headwater: &Headwater, trial: &Trial) {
    let before = Rows::read(&opencode.database());
    headwater.run_when_settled(&["prune", "--class", trial.class, "--session", &trial.session, "--yes"]);
    let after = Rows::read(&opencode.database());
    changes::assert_own(trial.class, &before.of_session(&trial.session), &after.of_session(&trial.session));
    let others = before.without_session(&trial.session).changes(&after.without_session(&trial.session));
    assert_eq!(others, Vec::<String>::new(), "{} touches its session only", trial.class);
}

/// Prunes into an archive and puts everything back: not one byte of one row differs.
fn undo(opencode: &OpenCode, headwater: &Headwater, session: &str) {
    let archive = opencode.home().path("removed.archive");
    let archive = archive.to_str().unwrap();
    let before = Rows::read(&opencode.database());
    let classes =
        ["--class", "technical", "--class", "metadata", "--class", "diffs", "--class", "attachments"];
    let prune = [&["prune"], &classes[..], &["--session", session, "--archive", archive, "--yes"]].concat();
    headwater.run_when_settled(&prune);
    let pruned = before.changes(&Rows::read(&opencode.database()));
    assert!(pruned.len() > 10, "{pruned:?}");
    headwater.run(&["undo", "--archive", archive, "--yes"]);
    assert_eq!(
        before.changes(&Rows::read(&opencode.database())),
        Vec::<String>::new(),
        "undone byte for byte"
    );
}

/// Rebuilds the file without a class of one session: what remains is the same, row by row.
fn rebuild(opencode: &OpenCode, headwater: &Headwater, trial: &Trial) {
    let before = Rows::read(&opencode.database());
    let is_headline = trial.class == "technical";
    let classes = if is_headline { &REBUILT[..] } else { &[trial.class] };
    let mut arguments = vec!["rebuild", "--session", &trial.session, "--yes", "--force"];
    arguments.extend(classes.iter().flat_map(|class| ["--class", *class]));
    headwater.run(&arguments);
    let after = Rows::read(&opencode.database());
    let others = before.without_session(&trial.session).changes(&after.without_session(&trial.session));
    assert_eq!(others, Vec::<String>::new(), "a rebuild keeps every other row");
    let (before, after) = (before.of_session(&trial.session), after.of_session(&trial.session));
    if !is_headline {
        return changes::assert_own(trial.class, &before, &after);
    }
    let tables = [("technical", "part"), ("diffs", "message")];
    for (class, table) in tables {
        let only = |rows: &Rows| rows.of_tables(&[table, "event_sequence"]);
        changes::assert_own(class, &only(&before), &only(&after));
    }
}
