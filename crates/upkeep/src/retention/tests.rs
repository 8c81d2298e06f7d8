use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headwater_model::{DAY_MS, UnixMillis};
use headwater_prune::{Class, KeptReason};
use headwater_testkit::cases;
use headwater_testkit::fixture::{DAY, Fixture, Layout, NOW, Session, part};

use super::*;
use crate::WriteDatabase;
use crate::fence::NoServers;
use crate::observer::Unobserved;
use crate::prune::PruneOptions;
use crate::state::StateFile;

fn policy(folder: &Path, text: &str) -> Result<Policy, PolicyError> {
    let path = folder.join("retention.toml");
    fs::write(&path, text).unwrap();
    Policy::load(&path)
}

/// One run at `days` after the fixture's present.
fn run_at(path: &Path, policy: &Policy, days: i64) -> RetentionReport {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&path.with_file_name("receipts.db")).unwrap();
    let now = UnixMillis::new(NOW + days * DAY_MS);
    run(&database, &mut state, policy, &NoServers, PruneOptions::batch(), now, &Unobserved, |_| {}).unwrap()
}

fn planned(path: &Path, policy: &Policy) -> RetentionPlan {
    let database = crate::ReadDatabase::open(path).unwrap();
    plan(database.connection(), database.schema(), policy, UnixMillis::new(NOW), &Unobserved).unwrap()
}

/// Sessions of 40 KiB last used 10, 20, 30 and 40 days ago.
fn sessions(folder: &Path) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), Layout::V1);
    for days in [10, 20, 30, 40] {
        let id = format!("ses_{days}");
        let used = NOW - days * DAY;
        db.session(&Session { created: used, updated: used, ..Session::named(&id) });
        let message = format!("msg_{days}");
        db.message(&message, &id, used, &headwater_testkit::fixture::message::user(used));
        db.part_at(&format!("prt_{days}"), &message, &id, used, &part::text(&"x".repeat(40_000)));
    }
    db.close()
}

fn left(path: &Path) -> String {
    Fixture::reopen(path)
        .text("SELECT coalesce(group_concat(id), '') FROM (SELECT id FROM session ORDER BY id)")
}

const OLD: &str = "enabled = true\nolder_than = \"25d\"\nclasses = [\"sessions\"]\n";

#[test]
fn a_policy_that_is_not_understood_whole_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str| policy(folder.path(), text).unwrap_err().kind.to_string();
    assert!(refused("enable = true").contains("enable"));
    assert!(refused("enabled = \"yes\"").contains("enabled"));
    assert!(refused("enabled = ").starts_with("TOML parse error"));
    assert_eq!(refused("older_than = \"soon\""), "older_than is not an age such as \"30d\"");
    assert_eq!(refused("older_than = \"-3d\""), "older_than is not an age such as \"30d\"");
    assert_eq!(refused("size_cap = \"big\""), "size_cap is not a size such as \"20 GiB\"");
    assert!(refused("classes = [\"text\"]").starts_with("classes: unknown class"));
    assert_eq!(refused("classes = [\"sessions\"]"), "class sessions needs older_than, size_cap or keep_last");

    let missing = Policy::load(&folder.path().join("none.toml")).unwrap();
    assert!(!missing.enabled);
    let good = policy(folder.path(), "enabled = true\nsize_cap = \"20 GiB\"\nkeep_last = 3").unwrap();
    assert_eq!(good.size_cap.unwrap().get(), 20 << 30);
    assert!(good.classes.has(Class::SupersededEvents) && !good.classes.has(Class::Sessions));
}

#[test]
fn the_first_run_with_a_policy_previews_and_a_changed_policy_previews_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = sessions(folder.path());
    let off = policy(folder.path(), &OLD.replace("true", "false")).unwrap();
    assert_eq!(run_at(&path, &off, 0).outcome, Outcome::Skipped(Skip::Disabled));
    let first = policy(folder.path(), OLD).unwrap();
    assert_eq!(run_at(&path, &first, 0).outcome, Outcome::Previewed);
    assert_eq!(left(&path), "ses_10,ses_20,ses_30,ses_40");
    let other = policy(folder.path(), &OLD.replace("25d", "35d")).unwrap();
    assert_eq!(run_at(&path, &other, 0).outcome, Outcome::Previewed);
    let report = run_at(&path, &other, 0);
    assert!(matches!(report.outcome, Outcome::Done { freed } if freed.get() >= 40_000), "{report:?}");
    assert_eq!(left(&path), "ses_10,ses_20,ses_30");
    assert_eq!(run_at(&path, &first, 0).outcome, Outcome::Previewed, "the policy before is another one");
}

#[test]
fn a_run_that_does_nothing_says_why_and_how_old_the_last_success_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = sessions(folder.path());
    let policy = policy(folder.path(), OLD).unwrap();
    run_at(&path, &policy, 0);
    let done = run_at(&path, &policy, 0);
    assert_eq!(done.last_success_ms_ago, None);
    assert_eq!(left(&path), "ses_10,ses_20");

    let idle = run_at(&path, &policy, 1);
    assert_eq!(idle.outcome, Outcome::Skipped(Skip::NothingChosen));
    assert_eq!(idle.last_success_ms_ago, Some(DAY_MS));

    Fixture::reopen(&path).sql("UPDATE session SET revert = '{}'");
    let kept = run_at(&path, &policy, 31);
    assert_eq!(
        kept.outcome,
        Outcome::Skipped(Skip::NothingChosen),
        "a staged revert keeps the tree out of the plan"
    );
    assert_eq!(kept.last_success_ms_ago, Some(31 * DAY_MS));
    assert_eq!(left(&path), "ses_10,ses_20");
}

#[test]
fn a_busy_database_is_skipped_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = sessions(folder.path());
    let policy = policy(folder.path(), OLD).unwrap();
    run_at(&path, &policy, 0);
    let writer = Fixture::reopen(&path);
    writer.sql("BEGIN IMMEDIATE");
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&path.with_file_name("receipts.db")).unwrap();
    let options = PruneOptions::immediate();
    let report =
        run(&database, &mut state, &policy, &NoServers, options, UnixMillis::new(NOW), &Unobserved, |_| {})
            .unwrap();
    assert_eq!(report.outcome, Outcome::Skipped(Skip::Blocked));
    writer.sql("ROLLBACK");
    assert_eq!(left(&path), "ses_10,ses_20,ses_30,ses_40");
}

#[test]
fn size_cap_keep_last_and_pins_choose_the_least_recently_used() {
    let table = [
        ("size_cap = \"100 kB\"", vec!["ses_40", "ses_30"]),
        ("size_cap = \"1 GB\"", vec![]),
        ("keep_last = 3", vec!["ses_40"]),
        ("keep_last = 1\npins = [\"ses_30\"]", vec!["ses_40", "ses_20"]),
        ("older_than = \"15d\"\nprojects = [\"nobody\"]", vec![]),
        ("older_than = \"15d\"\nprojects = [\"prj_a\"]", vec!["ses_40", "ses_30", "ses_20"]),
        ("older_than = \"15d\"\nkeep_last = 2", vec!["ses_40", "ses_30"]),
    ];
    for (text, expected) in table {
        let folder = tempfile::tempdir().unwrap();
        let path = sessions(folder.path());
        let policy = policy(folder.path(), &format!("classes = [\"sessions\"]\n{text}")).unwrap();
        let planned = planned(&path, &policy);
        let chosen: Vec<&str> = planned
            .choices
            .iter()
            .filter(|choice| choice.kept.is_none())
            .map(|choice| choice.session.as_str())
            .collect();
        assert_eq!(chosen, expected, "{text}");
        let rows = planned.plan.fates.get("session").map_or(0, |fate| fate.dropped[&Class::Sessions].len());
        assert_eq!(rows, expected.len() as u64, "{text}");
    }
}

/// Case `idle_not_age`.
#[test]
fn age_is_last_use_and_what_is_doubtful_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::idle_not_age(folder.path());
    let policy = policy(folder.path(), "older_than = \"14d\"\nclasses = [\"sessions\"]").unwrap();
    let planned = planned(&case.path, &policy);
    let named: Vec<_> = planned.choices.iter().map(|choice| (choice.session.as_str(), choice.kept)).collect();
    assert_eq!(
        named,
        [
            ("ses_zero", Some(KeptReason::LastUseImplausible)),
            ("ses_archived", Some(KeptReason::Archived)),
            ("ses_old_idle", None),
            ("ses_future", Some(KeptReason::LastUseImplausible)),
        ]
    );
}

/// A tree is used between the plan of a run and its application.
#[test]
fn a_tree_that_is_used_meanwhile_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = sessions(folder.path());
    let policy = policy(folder.path(), OLD).unwrap();
    run_at(&path, &policy, 0);
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&path.with_file_name("receipts.db")).unwrap();
    let now = UnixMillis::new(NOW + DAY_MS);
    let used = |_: &RetentionPlan| {
        Fixture::reopen(&path).sql(&format!("UPDATE session SET time_updated = {NOW} WHERE id = 'ses_40'"));
    };
    let options = PruneOptions::batch();
    run(&database, &mut state, &policy, &NoServers, options, now, &Unobserved, used).unwrap();
    drop(database);
    assert_eq!(left(&path), "ses_10,ses_20,ses_40");
}

#[test]
fn a_policy_is_a_file_of_bounded_length() {
    const LONGEST: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| Policy::load(path).unwrap_err().kind;
    assert!(matches!(refused(Path::new("/dev/zero")), PolicyErrorKind::NotAFile));
    assert!(matches!(refused(folder.path()), PolicyErrorKind::NotAFile));
    let long = format!("# {}", "x".repeat(LONGEST));
    assert!(matches!(policy(folder.path(), &long).unwrap_err().kind, PolicyErrorKind::TooLong));
    policy(folder.path(), &long[..LONGEST]).unwrap();
}

#[test]
fn a_pin_of_a_session_that_is_gone_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let path = sessions(folder.path());
    let text =
        "enabled = true\nolder_than = \"15d\"\nclasses = [\"sessions\"]\npins = [\"ses_40\", \"ses_gone\"]";
    let plan = planned(&path, &policy(folder.path(), text).unwrap());
    assert!(!plan.plan.totals.is_empty());
}
