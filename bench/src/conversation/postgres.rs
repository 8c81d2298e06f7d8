//! A database in a cluster of the bench's own, whose commits wait for the disk.

use std::sync::OnceLock;

use anyhow::Result;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use headwater_store_postgres::{PostgresOptions, PostgresStore};
use headwater_testkit::postgres::Cluster;
use tokio_postgres::NoTls;

use super::Bench;
use super::data;

/// One database with a store in it.
pub(super) struct Database {
    address: String,
}

impl Database {
    /// Makes a store without sessions.
    pub(super) fn create(bench: &Bench) -> Result<Self> {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        let address = CLUSTER.get_or_init(Cluster::durable).create_database();
        bench.runtime.block_on(PostgresStore::open(&address, PostgresOptions::default()))?;
        Ok(Self { address })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// As the store's own pool.
    pub(super) fn pool(&self, connections: usize) -> Result<Pool> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.address.parse()?, NoTls, recycling);
        Ok(Pool::builder(manager).runtime(Runtime::Tokio1).max_size(connections).build()?)
    }

    /// Adds sessions with that many messages each.
    pub(super) fn fill(&self, bench: &Bench, sessions: usize, messages: u64) -> Result<()> {
        bench.runtime.block_on(async {
            let client = self.pool(1)?.get().await?;
            client.batch_execute(data::HEAD).await?;
            for session in 0..sessions {
                client.batch_execute(&data::session_and_turn(session)).await?;
                let rows = format!(
                    "INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, created_at, updated_at, content)
                     SELECT 'm{session}-' || lpad(i::text, 8, '0'), 's{session}', 'task', 't{session}', 'agent',
                         timestamp '2026-02-01' + i * interval '1 second', timestamp '2026-02-01', '{}'
                     FROM generate_series(1, {messages}) AS i",
                    data::text('a')
                );
                client.batch_execute(&rows).await?;
            }
            client.batch_execute("VACUUM ANALYZE").await?;
            Ok(())
        })
    }
}
