use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, Session, part, side_file};
use crate::sqlite3::Shell;

/// What [`pinned_log`] built. Drop `reader` to let the log go.
#[derive(Debug)]
pub struct PinnedLog {
    /// The database; its newer rows stand in the log only.
    pub path: PathBuf,
    /// Bytes of the write-ahead log; some 8 MiB.
    pub log_bytes: u64,
    /// Another process, inside a read transaction older than the log.
    pub reader: Shell,
}

/// A reader that never ends its transaction keeps the write-ahead log from shrinking (opencode 37495, codex 22444).
///
/// Right: "not reclaimed: a reader holds the log", with its size and an exit status of its own; the log is never removed by hand and
/// no full rewrite is begun (it would put a second copy of the database into that log); after the reader ends the same command works.
pub fn pinned_log(folder: &Path) -> PinnedLog {
    let db = create(folder, Layout::ReducedV1);
    db.session(&Session::named("ses_a"));
    db.assistant("msg_a", "ses_a");
    db.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut reader = Shell::open(db.path());
    assert_eq!(reader.run("BEGIN; SELECT count(*) FROM part;"), "0\n", "the reader's snapshot");
    for i in 0..200 {
        let call = format!("call_{i}");
        db.part(&format!("prt_{i:04}"), "msg_a", "ses_a", &part::bash(&call, &"x".repeat(40_000)));
    }
    assert_eq!(db.integer("PRAGMA wal_checkpoint(TRUNCATE)"), 1, "the log is pinned");
    let path = db.close_leaving_log();
    let log_bytes = side_file(&path, "-wal").metadata().expect("size of the log").len();
    PinnedLog { path, log_bytes, reader }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn the_log_can_be_folded_in_once_the_reader_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let case = pinned_log(folder.path());
        assert!(case.log_bytes > 8_000_000, "{}", case.log_bytes);
        let db = Fixture::reopen(&case.path);
        assert_eq!(db.integer("PRAGMA wal_checkpoint(TRUNCATE)"), 1);
        drop(case.reader);
        assert_eq!(db.integer("PRAGMA wal_checkpoint(TRUNCATE)"), 0);
        assert_eq!(db.integer("SELECT count(*) FROM part"), 200);
    }
}
