//! Making changes inside a transaction, and describing them (C5).

mod batch;
mod message;
mod recorder;
mod session;
mod turn;

use headwater_model::SessionId;
use headwater_model::conversation::SessionRecord;
use headwater_store::{Batch, ContentLimit, NewSession, Written};
use rusqlite::Connection;

use crate::failure::Failure;

/// What is asked of the writing thread.
#[derive(Debug)]
pub(crate) enum Work {
    /// Write a batch.
    Apply(Batch),
    /// Add a session.
    CreateSession(NewSession),
    /// Remove a session.
    DeleteSession(SessionId),
}

/// What it did.
#[derive(Debug)]
pub(crate) enum Done {
    /// A batch.
    Written(Written),
    /// A session is there.
    Session(SessionRecord),
    /// A session is gone.
    Removed,
}

/// Does `work` inside the transaction of `db`.
pub(crate) fn perform(db: &Connection, work: &Work, limit: ContentLimit) -> Result<Done, Failure> {
    match work {
        Work::Apply(batch) => batch::apply(db, batch, limit).map(Done::Written),
        Work::CreateSession(new) => session::create(db, new).map(Done::Session),
        Work::DeleteSession(session) => session::delete(db, session).map(|()| Done::Removed),
    }
}
