//! The suite that every backend runs, on a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test")]

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
}

impl InDatabase {
    async fn new(cluster: &Cluster) -> Self {
        let address = cluster.create_database();
        let options =
            PostgresOptions { content_limit: ContentLimit(ByteCount::new(12)), ..PostgresOptions::default() };
        let store = PostgresStore::open(&address, options).await.unwrap();
        let (past, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self { store, past }
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

macro_rules! laws {
    ($($law:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                let cluster = Cluster::start();
                laws::$law(&InDatabase::new(&cluster).await).await;
            }
        )*
    };
}

laws! {
    a_batch_that_fails_leaves_nothing,
    a_deleted_boundary_still_is_one,
    a_repeated_batch_changes_nothing,
    a_session_is_gone_without_a_trace,
    changes_past_the_store_move_the_revision,
    long_descriptions_are_resets,
    numbers_of_prompts_are_never_used_twice,
    receipts_of_concurrent_writers_cover_every_step_once,
    revisions_keep_every_digit,
    ties_stand_once_in_one_order,
}

/// The column keeps microseconds in UTC; whoever writes it cuts, because PostgreSQL would round.
#[tokio::test]
async fn stored_times_order_alike() {
    let cluster = Cluster::start();
    let stored = |text: &str| WallTime::parse_stored(text).unwrap().order_time().as_str().to_owned();
    laws::stored_times_order_alike(&InDatabase::new(&cluster).await, stored).await;
}

#[test]
fn random_sequences_go_as_in_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cluster = Cluster::start();
    proptest!(ProptestConfig::with_cases(48), |(steps in conformance::steps(20..60))| {
        let ran = runtime.block_on(async { conformance::run(&InDatabase::new(&cluster).await, &steps).await });
        prop_assert_eq!(ran, Ok(()));
    });
}
