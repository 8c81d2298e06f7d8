//! The triggers that raise revisions: whether they are as they were left, and putting them there (C2, C35).
//!
//! What was put in place is known by the rows of PostgreSQL's catalogue: each change of one, be it that a trigger was switched off and on again,
//! is another version of its row. A comment on a function of ours keeps which versions those were, and of which statements. So no definition is compared, which
//! versions of PostgreSQL print differently, and what happened in between is seen afterwards too.

use deadpool_postgres::Transaction;
use headwater_store::apply::Failure;
use tokio_postgres::Error;

use crate::run_tx::Task;
use crate::schema::LOCK;

/// What a host's database lacks, and what goes from it.
const ADOPT: &str = include_str!("../sql/adopt.sql");

/// The triggers.
const TRIGGERS: &str = include_str!("../sql/revision_triggers.sql");

/// The versions of the catalogue's rows of our triggers and functions, and of those of the host that would count the same changes, as one text; with it the statements
/// that are bound as `$1`.
const FOUND: &str = include_str!("../sql/found.sql");

/// Whether the triggers are as they were left, and what is found in the catalogue, as one text.
pub(crate) async fn find(transaction: &Transaction<'_>) -> Result<(bool, String), Error> {
    let row = transaction.query_one(FOUND, &[&format!("{ADOPT}{TRIGGERS}")]).await?;
    let (found, left): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    Ok((left.as_ref() == Some(&found), found))
}

/// Adopts a host's database and puts the triggers in place where they are not as they were left: in one transaction, so that the journal goes and the
/// triggers come, or neither (C29).
pub(crate) struct PutInPlace;

impl Task for PutInPlace {
    type Answer = ();

    async fn run(&self, transaction: &Transaction<'_>) -> Result<(), Failure<Error>> {
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        if find(transaction).await?.0 {
            return Ok(());
        }
        for statements in [ADOPT, TRIGGERS] {
            transaction.batch_execute(statements).await?;
        }
        // Digits and letters alone.
        let (_, found) = find(transaction).await?;
        let comment = format!("COMMENT ON FUNCTION headwater_raise_revisions(TEXT[]) IS '{found}'");
        transaction.batch_execute(&comment).await?;
        Ok(())
    }
}
