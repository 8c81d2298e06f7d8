//! The suite that every backend runs, on a real PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use headwater_model::{ByteCount, WallTime};
use headwater_store::ContentLimit;
use headwater_store::conformance::{self, Fixture, GaveWay, LoggedStep, OtherProgram, laws};
use headwater_store_postgres::{PostgresOptions, PostgresStore};
use headwater_testkit::postgres::Cluster;
use proptest::prelude::*;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::scene::connect;

struct InDatabase {
    address: String,
    store: PostgresStore,
    past: Client,
    /// Ends with this value.
    _cluster: Arc<Cluster>,
}

impl InDatabase {
    async fn alone() -> Self {
        Self::new(&Arc::new(Cluster::start())).await
    }

    async fn new(cluster: &Arc<Cluster>) -> Self {
        let address = cluster.create_database();
        let options =
            PostgresOptions { content_limit: ContentLimit(ByteCount::new(12)), ..PostgresOptions::default() };
        let store = PostgresStore::open(&address, options).await.unwrap();
        let past = connect(&address).await;
        Self { address, store, past, _cluster: Arc::clone(cluster) }
    }
}

#[async_trait]
impl Fixture for InDatabase {
    type Store = PostgresStore;

    fn store(&self) -> &PostgresStore {
        &self.store
    }

    async fn execute(&self, sql: &str) -> u64 {
        self.past.execute(sql, &[]).await.unwrap()
    }

    async fn count(&self, sql: &str) -> i64 {
        let row = self.past.query_one(&format!("SELECT ({sql})::bigint"), &[]).await.unwrap();
        row.get(0)
    }

    async fn log_steps(&self) {
        let log = "CREATE TABLE steps (number BIGSERIAL, session TEXT, base BIGINT, revision BIGINT, author TEXT);
            CREATE FUNCTION log_step() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO steps (session, base, revision, author) VALUES (NEW.session_id,
                    CASE WHEN TG_OP = 'UPDATE' THEN OLD.revision ELSE 0 END, NEW.revision, current_setting('application_name'));
                RETURN NULL;
            END $$;
            CREATE TRIGGER log_step AFTER INSERT OR UPDATE ON conversation_session_revisions
                FOR EACH ROW EXECUTE FUNCTION log_step();";
        self.past.batch_execute(log).await.unwrap();
    }

    async fn steps(&self) -> Vec<LoggedStep> {
        let sql = "SELECT session, base, revision, author = 'headwater' FROM steps ORDER BY number";
        let step = |row: &tokio_postgres::Row| LoggedStep {
            session: row.get(0),
            base: row.get(1),
            revision: row.get(2),
            by_store: row.get(3),
        };
        self.past.query(sql, &[]).await.unwrap().iter().map(step).collect()
    }

    async fn connect(&self) -> Box<dyn OtherProgram> {
        Box::new(Other(connect(&self.address).await))
    }
}

struct Other(Client);

#[async_trait]
impl OtherProgram for Other {
    async fn execute(&mut self, sql: &str) -> Result<(), GaveWay> {
        let Err(error) = self.0.batch_execute(sql).await else { return Ok(()) };
        // A session that is removed at this moment has no place for the row any more.
        let gives_way = [&SqlState::T_R_DEADLOCK_DETECTED, &SqlState::FOREIGN_KEY_VIOLATION];
        assert!(error.code().is_some_and(|state| gives_way.contains(&state)), "{sql}: {error:?}");
        Err(GaveWay)
    }
}

headwater_store::conformance_tests!(InDatabase::alone());

/// The column keeps microseconds in UTC; whoever writes it cuts, because PostgreSQL would round.
#[tokio::test]
async fn stored_times_order_alike() {
    let stored = |text: &str| WallTime::parse_stored(text).unwrap().order_time().as_str().to_owned();
    laws::stored_times_order_alike(&InDatabase::alone().await, stored).await;
}

#[test]
fn random_sequences_go_as_in_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cluster = Arc::new(Cluster::start());
    proptest!(ProptestConfig::with_cases(16), |(steps in conformance::steps(20..60))| {
        let ran = runtime.block_on(async { conformance::run(&InDatabase::new(&cluster).await, &steps).await });
        prop_assert_eq!(ran, Ok(()));
    });
}
