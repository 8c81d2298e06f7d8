//! What a database must have before the store works with it.

use std::error::Error;

use deadpool_postgres::Pool;
use refinery::{Runner, Target};

use crate::failure::Failed;
use crate::run_tx::{Ended, attempts};
use crate::triggers::PutInPlace;

/// The key of the advisory lock under which one process at a time works on the schema: the text "headwater" as a number.
pub(crate) const LOCK: i64 = 0x6865_6164_7761_7465;

/// Why a database could not be opened as a conversation store. What was in it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address or another option is malformed.
    #[error("the options of the connection are malformed")]
    Options(#[source] Box<dyn Error + Send + Sync>),
    /// The database cannot be reached, or the connection was lost.
    #[error("PostgreSQL cannot be reached")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// A statement failed.
    #[error("the schema cannot be brought up to date")]
    Statement(#[source] Box<dyn Error + Send + Sync>),
    /// The schema is newer than this program, or a migration failed.
    #[error("the schema cannot be brought up to date; a newer version of the program may have written it")]
    Migration(#[source] Box<dyn Error + Send + Sync>),
    /// The source of randomness failed.
    #[error("no randomness")]
    Io(#[from] std::io::Error),
}

impl From<Failed> for OpenError {
    fn from(failed: Failed) -> Self {
        if failed.is_lost() || matches!(failed, Failed::Pool(_)) {
            Self::Connect(Box::new(failed))
        } else {
            Self::Statement(Box::new(failed))
        }
    }
}

/// Brings the schema up to date, one process at a time.
pub(crate) async fn prepare(pool: &Pool) -> Result<(), OpenError> {
    let mut client = pool.get().await.map_err(Failed::from)?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.map_err(Failed::from)?;
    let prepared = migrations().run_async(&mut **client).await.map_err(of_migration);
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await;
    prepared?;
    unlocked.map_err(Failed::from)?;
    drop(client);
    put_triggers_in_place(pool).await
}

/// See [`PutInPlace`]; it is the same however often it is done.
pub(crate) async fn put_triggers_in_place(pool: &Pool) -> Result<(), OpenError> {
    attempts(pool, &PutInPlace).await.map_err(|ended| match ended {
        Ended::Failed(failed) | Ended::Unknown(failed) => failed.into(),
        Ended::Refused(kind) => OpenError::Statement(Box::new(kind)),
    })
}

/// What a migration failed with: PostgreSQL's answer, or that this program does not know what it found.
fn of_migration(error: refinery::Error) -> OpenError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<tokio_postgres::Error>() {
            return Failed::from(inner).into();
        }
        cause = inner.source();
    }
    OpenError::Migration(Box::new(error))
}

fn migrations() -> Runner {
    mod embedded {
        refinery::embed_migrations!("migrations");
    }
    embedded::migrations::runner().set_grouped(true).set_abort_missing(true).set_target(Target::Latest)
}
