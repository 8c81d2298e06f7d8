//! Removing a journal of 2.75 GiB: the transaction against the same DROP statements, and the whole of it with the checked copy.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use headwater_store_sqlite::{SqliteOptions, SqliteStore};
use headwater_testkit::program;

use super::Bench;
use super::data;
use crate::side::Side;
use crate::table::Line;

/// Versions of messages, and as many events.
const COPIES: u64 = 100_000;

/// Bytes of each: 2.75 GiB in all.
const COPY_BYTES: u64 = 14_700;

/// Messages, which stay.
const MESSAGES: u64 = 10_000;

/// The journal, as its host makes it.
const JOURNAL: &str = include_str!("../../../crates/store-sqlite/tests/host/journal.sql");

/// Removes them as the store does: without overwriting what is freed.
const DROPS: &str = "PRAGMA secure_delete = OFF; BEGIN IMMEDIATE;
    DROP TRIGGER conversation_message_insert; DROP TRIGGER conversation_message_update;
    DROP TRIGGER conversation_message_delete; DROP TRIGGER conversation_turn_insert;
    DROP TRIGGER conversation_turn_complete; DROP TRIGGER conversation_turn_delete;
    DROP TRIGGER conversation_session_delete;
    DROP TABLE conversation_session_events; DROP TABLE conversation_message_versions;
    DROP TABLE conversation_turn_versions; DROP TABLE conversation_session_streams;
    DROP TABLE conversation_journal_meta; COMMIT;";

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let made = bench.data.made("conversation-journal", create)?;
    let (mut ours, mut whole) = (Side::default(), Side::default());
    let (mut theirs, mut theirs_whole) = (Side::default(), Side::default());
    for _ in 0..bench.options.runs {
        let copy = Copied::of(bench, &made)?;
        let begun = std::time::Instant::now();
        let store = SqliteStore::open(&copy.path, SqliteOptions::default())?;
        whole.add(begun.elapsed().as_secs_f64());
        let upgrade = store.upgrade();
        ensure!(upgrade.backup.is_some() && upgrade.removed.len() == 12, "{upgrade:?}");
        ours.add(upgrade.changed_in.as_secs_f64());
        drop(store);
        drop(copy);
        let copy = Copied::of(bench, &made)?;
        let begun = std::time::Instant::now();
        let saved = copy.path.with_extension("saved");
        let save = format!(
            "VACUUM INTO '{}'; ATTACH '{}' AS saved; PRAGMA saved.quick_check;",
            saved.display(),
            saved.display()
        );
        let mut ignored = Side::default();
        ignored.run(Command::new(program::sqlite3()).arg(&copy.path).arg(save), &[0])?;
        theirs.run(Command::new(program::sqlite3()).arg(&copy.path).arg(DROPS), &[0])?;
        theirs_whole.add(begun.elapsed().as_secs_f64());
    }
    Ok(vec![
        Line::Ratio {
            what: "SQLite: cutover of a journal of 2.75 GiB, the copy apart".to_owned(),
            peer: "the same DROP statements, sqlite3 shell",
            ours,
            theirs,
            goal: 1.1,
        },
        Line::Compared {
            what: "the same with its checked and synced copy".to_owned(),
            peer: "VACUUM INTO, quick_check and the DROP statements, sqlite3 shell",
            ours: whole,
            theirs: theirs_whole,
        },
    ])
}

/// A copy of the file that may be changed.
struct Copied {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Copied {
    fn of(bench: &Bench, made: &Path) -> Result<Self> {
        let folder = bench.data.scratch()?;
        let path = folder.path().join("store.db");
        std::fs::copy(made, &path).context("copy the store")?;
        std::fs::File::open(&path)?.sync_all()?;
        Ok(Self { path, _folder: folder })
    }
}

fn create(path: &Path) -> Result<()> {
    data::create(path, 1, MESSAGES)?;
    let db = data::connect(path)?;
    db.execute_batch(JOURNAL)?;
    let series =
        format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {COPIES})");
    db.execute_batch(&format!(
        "BEGIN;
         {series} INSERT INTO conversation_session_events SELECT 's0', i, 's0:' || i, 1, 'message.updated', 'task',
             hex(zeroblob({half})), '2026-01-01 00:00:00' FROM n;
         {series} INSERT INTO conversation_message_versions SELECT 's0', printf('m0-%08d', 1 + i % {MESSAGES}), i, 'task', 'agent',
             '2026-01-01 00:00:00', FALSE, hex(zeroblob({half})) FROM n;
         COMMIT; PRAGMA wal_checkpoint(TRUNCATE)",
        half = COPY_BYTES / 2
    ))?;
    db.close().map_err(|(_, error)| error)?;
    Ok(())
}
