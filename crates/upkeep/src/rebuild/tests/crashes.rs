//! Kill -9 at every step: the old database or the new one, both whole, and no rubbish after the next run.

use std::collections::BTreeMap;
use std::fs::{self, File};

use rusqlite::types::Value;

use super::paused::Paused;
use super::sample::{Sample, content, expected};
use crate::fixture::{self, OtherProcess};
use crate::observer::Unobserved;
use crate::rebuild::{RebuildOptions, Step};

type Content = BTreeMap<String, Vec<Vec<Value>>>;

/// With rows in a log that a killed server left, so that the checkpoint has something to do.
fn sample() -> (Sample, Content) {
    let sample = Sample::new();
    let mut server = OtherProcess::open(&sample.path);
    assert_eq!(server.run(&fixture::v1_session("ses_log")), "ok");
    server.kill();
    let copy = sample.folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for suffix in ["", "-wal"] {
        let name = format!("opencode.db{suffix}");
        fs::copy(sample.folder.path().join(&name), copy.join(&name)).unwrap();
    }
    let before = content(&copy.join("opencode.db"));
    fs::remove_dir_all(&copy).unwrap();
    (sample, before)
}

fn assert_whole(sample: &Sample, before: &Content, is_new: bool, step: Step) {
    let found = content(&sample.path);
    let wanted = if is_new { expected(before.clone()) } else { before.clone() };
    assert!(found == wanted, "after a kill at {} the database is neither", step.name());
    let db = fixture::connect(&sample.path);
    let answer: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok", "{}", step.name());
}

/// The next run finds its way, whatever the killed one left.
fn assert_next_run_cleans_up(sample: &Sample, before: &Content, step: Step) {
    let options = RebuildOptions { force: true, ..RebuildOptions::default() };
    sample.rebuild_with(&options, &Unobserved).unwrap();
    assert!(content(&sample.path) == expected(before.clone()), "{}", step.name());
    assert_eq!(sample.names(), ["opencode.db"], "{}", step.name());
}

#[test]
fn killed_at_any_step_of_the_lease_path() {
    for step in Step::BY_LEASE {
        let (sample, before) = sample();
        Paused::at(step, &sample.path, false).kill();
        let leftovers = crate::rebuild::temporary::leftovers(&sample.path).unwrap().len();
        let has_leftover = (Step::Created..=Step::FolderSynced).contains(&step);
        assert_eq!(leftovers, usize::from(has_leftover), "{}", step.name());
        assert_whole(&sample, &before, step >= Step::Exchanged, step);
        assert_next_run_cleans_up(&sample, &before, step);
    }
}

#[test]
fn killed_at_any_step_of_copying_back_in_place() {
    for step in Step::IN_PLACE {
        let (sample, before) = sample();
        // Any descriptor of another process refuses the lease.
        let reader = File::open(&sample.path).unwrap();
        Paused::at(step, &sample.path, true).kill();
        drop(reader);
        assert_whole(&sample, &before, step >= Step::CopiedBack, step);
        assert_next_run_cleans_up(&sample, &before, step);
    }
}

#[test]
fn files_of_a_killed_run_stay_while_the_database_is_damaged() {
    let sample = Sample::new();
    Paused::at(Step::Verified, &sample.path, false).kill();
    let leftover = super::paused::temporary_of(&sample.path);
    let pages = fs::metadata(&sample.path).unwrap().len() / 4096;
    let file = File::options().write(true).open(&sample.path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xFF; 4096], (pages / 2) * 4096).unwrap();
    drop(file);
    let refused = sample.rebuild().unwrap_err();
    assert!(matches!(refused, crate::rebuild::RebuildErrorKind::Damaged), "{refused}");
    assert!(leftover.exists(), "it may be the only whole copy");
}
