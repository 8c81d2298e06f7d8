//! What a power cut may take back: nobody is told of a prune, and no receipt is resolved, before the commit is on disk.

use std::sync::atomic::{AtomicBool, Ordering};

use super::crash::killed_at;
use super::*;

/// Takes the log away when a step is reached, so that it cannot be synced any more; everything else goes on through open descriptors.
struct LogAway {
    step: Step,
    log: PathBuf,
    is_away: AtomicBool,
}

impl LogAway {
    fn new(step: Step, database: &Path) -> Self {
        let log = database.with_file_name("opencode.db-wal");
        Self { step, log, is_away: AtomicBool::new(false) }
    }

    fn elsewhere(&self) -> PathBuf {
        self.log.with_file_name("log-elsewhere")
    }

    fn put_back(&self) {
        std::fs::rename(self.elsewhere(), &self.log).unwrap();
    }
}

impl Observer for LogAway {
    fn reached(&self, step: &'static str) {
        if step == self.step.name() && !self.is_away.swap(true, Ordering::SeqCst) {
            std::fs::rename(&self.log, self.elsewhere()).unwrap();
        }
    }
}

/// How the prune fails whose log is taken away, and how many receipts of done prunes the state file has then.
fn pruned_without_sync(path: &Path, request: &PruneRequest, away: &LogAway) -> (String, u64) {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let identity = DatabaseIdentity::read(database.connection(), database.file()).unwrap();
    let key = state.database(&identity).unwrap();
    let now = UnixMillis::new(NOW + 60_000);
    let outcome = Pruner::new(&database, &mut state, &NoServers, PruneOptions::immediate(), now, away)
        .unwrap()
        .message(request, None);
    let error = outcome.unwrap_err().to_string();
    (error, state.receipt_count(key).unwrap())
}

#[test]
fn a_prune_whose_log_cannot_be_synced_is_not_reported_and_its_receipt_stays_open() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[0, 1]);
        let before = dump(&path);
        let away = LogAway::new(Step::Committed, &path);
        let (error, done) = pruned_without_sync(&path, &request, &away);
        assert!(error.contains("the write-ahead log cannot be synced"), "{storage:?}: {error}");
        assert_eq!(done, 0, "{storage:?}");
        away.put_back();
        assert_ne!(dump(&path), before, "{storage:?}: it is committed");
        let first = receipt(prune(&path, &request));
        assert_eq!(receipt(prune(&path, &request)), first, "{storage:?}");
        assert_eq!((preview(&path).items.len(), receipts(&path)), (2, 1), "{storage:?}");
    }
}

/// The rows that a killed process left may not be on disk: they prove nothing before they are.
#[test]
fn an_open_intent_is_not_resolved_from_rows_that_cannot_be_synced() {
    for (storage, layout) in [(Storage::V1, Layout::V1), (Storage::V2, Layout::ReducedV2)] {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[0, 1]);
        assert!(killed_at(Step::Committed, &path, &request, None));
        let away = LogAway::new(Step::Claimed, &path);
        let (error, done) = pruned_without_sync(&path, &request, &away);
        assert!(error.contains("the write-ahead log cannot be synced"), "{storage:?}: {error}");
        assert_eq!(done, 0, "{storage:?}");
        away.put_back();
        receipt(prune(&path, &request));
        assert_eq!((preview(&path).items.len(), receipts(&path)), (2, 1), "{storage:?}");
    }
}

/// The power fails after the commit and takes back what was not synced: the database is as it was, the state file has the intent.
#[test]
fn a_commit_that_the_power_cut_took_back_has_no_receipt_and_is_made_again() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[0, 1]);
        let before = dump(&path);
        let synced = std::fs::read(&path).unwrap();
        assert!(killed_at(Step::Committed, &path, &request, None), "{storage:?}");
        for suffix in ["-wal", "-shm"] {
            std::fs::remove_file(path.with_file_name(format!("opencode.db{suffix}"))).unwrap();
        }
        std::fs::write(&path, synced).unwrap();
        assert_eq!(dump(&path), before, "{storage:?}");
        assert_eq!(receipts(&path), 0, "{storage:?}");
        let first = receipt(prune(&path, &request));
        assert_eq!(preview(&path).revision, first.after, "{storage:?}");
        assert_eq!((preview(&path).items.len(), receipts(&path)), (2, 1), "{storage:?}");
    }
}
