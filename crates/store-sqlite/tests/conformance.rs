//! The suite that every backend runs.
#![expect(clippy::unwrap_used, reason = "a test")]

use async_trait::async_trait;
use headwater_model::{ByteCount, TaskId};
use headwater_store::ContentLimit;
use headwater_store::conformance::{self, Fixture};
use headwater_store_sqlite::{SqliteOptions, SqliteStore};
use proptest::prelude::*;
use rusqlite::Connection;

struct InFile {
    folder: tempfile::TempDir,
    store: SqliteStore,
}

impl InFile {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options =
            SqliteOptions { content_limit: ContentLimit(ByteCount::new(12)), ..SqliteOptions::default() };
        let store = SqliteStore::open(&folder.path().join("store.db"), options).unwrap();
        Self { folder, store }
    }

    #[expect(clippy::disallowed_methods, reason = "what another program does to the file")]
    fn execute(&self, sql: &str, task: &TaskId) {
        let db = Connection::open(self.folder.path().join("store.db")).unwrap();
        db.pragma_update(None, "foreign_keys", true).unwrap();
        db.execute(sql, [task.as_str()]).unwrap();
    }
}

#[async_trait]
impl Fixture for InFile {
    type Store = SqliteStore;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn create_task(&self, task: &TaskId) {
        self.execute(
            "INSERT OR IGNORE INTO tasks (id, title, created_at, updated_at) VALUES (?1, '', '2026-01-01 00:00:00', '2026-01-01 00:00:00')",
            task,
        );
    }

    async fn delete_task(&self, task: &TaskId) {
        self.execute("DELETE FROM tasks WHERE id = ?1", task);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_sequences_go_as_in_the_model(steps in conformance::steps(20..60)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let ran = runtime.block_on(async { conformance::run(&InFile::new(), &steps).await });
        prop_assert_eq!(ran, Ok(()));
    }
}
