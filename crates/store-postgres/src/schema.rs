//! What a database must have before the store works with it.

use deadpool_postgres::{Client, Pool, PoolError};
use refinery::{Runner, Target};

/// What a host's database lacks, and what goes from it.
const ADOPT: &str = include_str!("../sql/adopt.sql");

/// The triggers that raise revisions.
const TRIGGERS: &str = include_str!("../sql/revision_triggers.sql");

/// The key of the advisory lock under which one process at a time works on the schema: the text "headwater" as a number.
const LOCK: i64 = 0x6865_6164_7761_7465;

/// Why a database could not be opened as a conversation store. What was in it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address or another option is malformed.
    #[error("the options of the connection are malformed")]
    Options(#[source] tokio_postgres::Error),
    /// The pool could not be built.
    #[error("the pool of connections cannot be built")]
    Pool(#[from] deadpool_postgres::BuildError),
    /// The database cannot be reached.
    #[error("PostgreSQL cannot be reached")]
    Connect(#[from] PoolError),
    /// A statement failed.
    #[error("the schema cannot be brought up to date")]
    Statement(#[from] tokio_postgres::Error),
    /// The schema is newer than this program, or a migration failed.
    #[error("the schema cannot be brought up to date; a newer version of the program may have written it")]
    Migration(#[from] refinery::Error),
    /// The source of randomness failed.
    #[error("no randomness")]
    Io(#[from] std::io::Error),
}

/// Brings the schema up to date, one process at a time.
pub(crate) async fn prepare(pool: &Pool) -> Result<(), OpenError> {
    let mut client = pool.get().await?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    let prepared = upgrade(&mut client).await;
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await;
    prepared?;
    unlocked?;
    Ok(())
}

async fn upgrade(client: &mut Client) -> Result<(), OpenError> {
    migrations().run_async(&mut ***client).await?;
    // One transaction: the journal goes and the triggers come, or neither (C29).
    let transaction = client.transaction().await?;
    for statement in [ADOPT, TRIGGERS] {
        transaction.batch_execute(statement).await?;
    }
    transaction.commit().await?;
    Ok(())
}

fn migrations() -> Runner {
    mod embedded {
        refinery::embed_migrations!("migrations");
    }
    embedded::migrations::runner().set_grouped(true).set_abort_missing(true).set_target(Target::Latest)
}
