//! What is asked of the writing thread.

use futures_util::FutureExt;
use headwater_model::SessionId;
use headwater_model::conversation::SessionRecord;
use headwater_store::apply::{self, Failure};
use headwater_store::transfer::{Imported, StoredRow};
use headwater_store::{Batch, ContentLimit, NewSession, Written};
use rusqlite::Connection;

use crate::schema;
use crate::transaction::InTransaction;

/// A request.
#[derive(Debug)]
pub(crate) enum Work {
    /// Write a batch.
    Apply(Batch),
    /// Add a session.
    CreateSession(NewSession),
    /// Remove a session.
    DeleteSession(SessionId),
    /// Put the triggers back.
    PutTriggers,
    /// Take in rows that were stored elsewhere.
    Import(Vec<StoredRow>),
}

/// What was done.
#[derive(Debug)]
pub(crate) enum Done {
    /// A batch.
    Written(Written),
    /// A session is there.
    Session(SessionRecord),
    /// A session is gone.
    Removed,
    /// The triggers are in place.
    TriggersPut,
    /// Rows are there.
    Imported(Imported),
}

/// Does `work` inside the transaction of `db`.
pub(crate) fn perform(
    db: &Connection,
    work: &Work,
    limit: ContentLimit,
) -> Result<Done, Failure<rusqlite::Error>> {
    let mut rows = InTransaction::new(db);
    let done = async {
        match work {
            Work::Apply(batch) => apply::apply(&mut rows, batch, limit).await.map(Done::Written),
            Work::CreateSession(new) => apply::create_session(&mut rows, new).await.map(Done::Session),
            Work::DeleteSession(session) => {
                apply::delete_session(&mut rows, session).await.map(|()| Done::Removed)
            }
            Work::PutTriggers => Ok(schema::put_triggers_in_place(db).map(|()| Done::TriggersPut)?),
            Work::Import(batch) => apply::import(&mut rows, batch).await.map(Done::Imported),
        }
    };
    // Nothing in it waits.
    done.now_or_never().unwrap_or(Err(Failure::Database(rusqlite::Error::InvalidQuery)))
}
