//! Transactions that write: their isolation, and when they are tried again.

use std::time::Duration;

use deadpool_postgres::{Pool, Transaction};
use headwater_store::apply::Failure;
use headwater_store::{WriteError, WriteErrorKind};

use crate::failure::Failed;

/// How often a transaction is tried before its caller hears of it.
pub(crate) const ATTEMPTS: u32 = 6;

/// The longest pause before the second attempt; it doubles with each.
const PAUSE: Duration = Duration::from_millis(4);

/// A transaction that can be begun anew.
pub(crate) trait Task {
    /// What it answers.
    type Answer;

    /// Does the work inside `transaction`.
    async fn run(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Self::Answer, Failure<tokio_postgres::Error>>;
}

/// Runs `task` in a transaction and commits it. READ COMMITTED: the locks on the revision rows serialise the writers of a session. A transaction
/// that PostgreSQL chose to give way, that another one overtook, or whose connection was lost before the commit, is tried again; one whose connection was lost while
/// committing is not, because it may have happened.
pub(crate) async fn run_tx<T: Task>(pool: &Pool, task: &T) -> Result<T::Answer, WriteError> {
    attempts(pool, task).await.map_err(|ended| match ended {
        Ended::Refused(kind) => kind.into(),
        Ended::Unknown(failed) => WriteErrorKind::Unknown(Box::new(failed)).into(),
        Ended::Failed(failed) => failed.of_write(),
    })
}

/// [`run_tx`], answering with how the last attempt ended.
pub(crate) async fn attempts<T: Task>(pool: &Pool, task: &T) -> Result<T::Answer, Ended> {
    let mut attempt = 1;
    loop {
        match attempt_tx(pool, task).await {
            Err(Ended::Failed(failed)) if attempt < ATTEMPTS && failed.gives_way() => {}
            ended => return ended,
        }
        tokio::time::sleep(pause(attempt)).await;
        attempt += 1;
    }
}

/// How an attempt ended.
pub(crate) enum Ended {
    /// It asks for what cannot be.
    Refused(WriteErrorKind),
    /// Nothing was committed.
    Failed(Failed),
    /// Whether it was committed is not known.
    Unknown(Failed),
}

async fn attempt_tx<T: Task>(pool: &Pool, task: &T) -> Result<T::Answer, Ended> {
    let mut client = pool.get().await.map_err(|error| Ended::Failed(error.into()))?;
    let transaction = client.transaction().await.map_err(|error| Ended::Failed(error.into()))?;
    // Dropping the transaction rolls it back.
    let answer = task.run(&transaction).await.map_err(|failure| match failure {
        Failure::Refused(kind) => Ended::Refused(kind),
        Failure::Database(error) => Ended::Failed(error.into()),
    })?;
    let Err(error) = transaction.commit().await else { return Ok(answer) };
    let failed = Failed::from(error);
    // A server that shuts down at once ends its connections wherever they are: the commit may be written already.
    Err(if failed.is_lost() { Ended::Unknown(failed) } else { Ended::Failed(failed) })
}

/// A random part of a pause that doubles with each attempt, so that those who gave way do not meet again.
fn pause(attempt: u32) -> Duration {
    let longest = PAUSE * 2_u32.saturating_pow(attempt - 1);
    let mut byte = [0];
    // Without randomness the pause is short; that is all.
    let random = if getrandom::fill(&mut byte).is_ok() { u32::from(byte[0]) } else { 0 };
    longest * random / 255
}
