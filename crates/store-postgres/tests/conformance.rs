//! The suite that every backend runs, on a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use async_trait::async_trait;
use headwater_model::{ByteCount, WallTime};
use headwater_store::ContentLimit;
use headwater_store::conformance::{self, Fixture, laws};
use headwater_store_postgres::{PostgresOptions, PostgresStore};
use headwater_testkit::postgres::Cluster;
use proptest::prelude::*;
use tokio_postgres::{Client, NoTls};

struct InDatabase {
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
        let (past, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self { store, past, _cluster: Arc::clone(cluster) }
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
    proptest!(ProptestConfig::with_cases(32), |(steps in conformance::steps(20..60))| {
        let ran = runtime.block_on(async { conformance::run(&InDatabase::new(&cluster).await, &steps).await });
        prop_assert_eq!(ran, Ok(()));
    });
}
