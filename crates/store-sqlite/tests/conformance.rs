//! The suite that every backend runs.
#![expect(clippy::unwrap_used, reason = "a test")]

use async_trait::async_trait;
use headwater_model::ByteCount;
use headwater_store::ContentLimit;
use headwater_store::conformance::{self, Fixture, GaveWay, LoggedStep, OtherProgram, laws};
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
    fn past(&self) -> Connection {
        let db = Connection::open(self.folder.path().join("store.db")).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        db.pragma_update(None, "foreign_keys", true).unwrap();
        db
    }
}

#[async_trait]
impl Fixture for InFile {
    type Store = SqliteStore;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn execute(&self, sql: &str) -> u64 {
        self.past().execute(sql, []).unwrap() as u64
    }

    async fn count(&self, sql: &str) -> i64 {
        self.past().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    async fn log_steps(&self) {
        let log = "CREATE TABLE step_author (name TEXT); INSERT INTO step_author VALUES ('store');
            CREATE TABLE steps (session TEXT, base INTEGER, revision INTEGER, author TEXT);
            CREATE TRIGGER step_first AFTER INSERT ON conversation_session_revisions BEGIN
                INSERT INTO steps SELECT NEW.session_id, 0, NEW.revision, name FROM step_author; END;
            CREATE TRIGGER step_next AFTER UPDATE ON conversation_session_revisions BEGIN
                INSERT INTO steps SELECT NEW.session_id, OLD.revision, NEW.revision, name FROM step_author; END;";
        self.past().execute_batch(log).unwrap();
    }

    async fn steps(&self) -> Vec<LoggedStep> {
        let db = self.past();
        let sql = "SELECT session, base, revision, author = 'store' FROM steps ORDER BY rowid";
        let mut statement = db.prepare(sql).unwrap();
        let step = |row: &rusqlite::Row<'_>| {
            let [session, base, revision, by_store] = [0, 1, 2, 3];
            Ok(LoggedStep {
                session: row.get(session)?,
                base: row.get(base)?,
                revision: row.get(revision)?,
                by_store: row.get(by_store)?,
            })
        };
        statement.query_map([], step).unwrap().collect::<Result<_, _>>().unwrap()
    }

    async fn connect(&self) -> Box<dyn OtherProgram> {
        Box::new(Other(self.past()))
    }
}

struct Other(Connection);

#[async_trait]
impl OtherProgram for Other {
    async fn execute(&mut self, sql: &str) -> Result<(), GaveWay> {
        let sign = |name: &str| format!("UPDATE step_author SET name = '{name}'");
        let whole = format!("BEGIN IMMEDIATE; {}; {sql}; {}; COMMIT", sign("other"), sign("store"));
        let Err(error) = self.0.execute_batch(&whole) else { return Ok(()) };
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "{sql}: {error}");
        Err(GaveWay)
    }
}

headwater_store::conformance_tests!(async { InFile::new() });

#[tokio::test]
async fn stored_times_order_alike() {
    laws::stored_times_order_alike(&InFile::new(), str::to_owned).await;
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
