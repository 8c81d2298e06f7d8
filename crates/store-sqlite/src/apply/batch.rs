//! A batch: each mutation, in order.

use std::collections::BTreeSet;

use headwater_model::SessionId;
use headwater_store::{Batch, ContentLimit, Mutation, Written};
use rusqlite::Connection;

use crate::apply::recorder::Recorder;
use crate::failure::{Failure, MutationFailure};

/// A batch while it is being written.
pub(super) struct Writing<'a> {
    pub(super) db: &'a Connection,
    pub(super) batch: &'a Batch,
    pub(super) limit: ContentLimit,
    pub(super) recorder: Recorder,
}

/// Writes a batch inside the transaction of `db`. Where it fails, part of it may be written: the caller rolls back.
pub(super) fn apply(db: &Connection, batch: &Batch, limit: ContentLimit) -> Result<Written, Failure> {
    let recorder = Recorder::begin(db, sessions(batch))?;
    let mut writing = Writing { db, batch, limit, recorder };
    for (index, mutation) in batch.mutations.iter().enumerate() {
        writing.make(mutation).map_err(|failure| failure.at(index))?;
    }
    Ok(Written { receipts: writing.recorder.finish(db)? })
}

/// The sessions that a batch names.
fn sessions(batch: &Batch) -> BTreeSet<SessionId> {
    let mut sessions = BTreeSet::from([batch.session.clone()]);
    for mutation in &batch.mutations {
        if let Mutation::MoveMessage { to_session, .. } = mutation {
            sessions.insert(to_session.clone());
        }
    }
    sessions
}

impl Writing<'_> {
    fn make(&mut self, mutation: &Mutation) -> Result<(), MutationFailure> {
        match mutation {
            Mutation::CreateMessage(new) => self.create_message(new),
            Mutation::AppendContent { message, offset_bytes, text } => {
                self.append(message, *offset_bytes, text)
            }
            Mutation::UpdateMessage { message, patch } => self.update_message(message, patch),
            Mutation::UpdateTool { message, patch } => self.update_tool(message, patch),
            Mutation::Resolve { message, status } => self.resolve(message, status),
            Mutation::MoveMessage { message, to_session, to_turn } => {
                self.move_message(message, to_session, to_turn)
            }
            Mutation::DeleteMessage { message } => self.delete_message(message),
            Mutation::CreateTurn(new) => self.create_turn(new),
            Mutation::CompleteTurn { turn, completed_at } => self.complete_turn(turn, *completed_at),
            Mutation::UpdateTurn { turn, patch } => self.update_turn(turn, patch),
            Mutation::DeleteTurn { turn } => self.delete_turn(turn),
        }
    }

    /// The batch's session.
    pub(super) fn session(&self) -> &str {
        self.batch.session.as_str()
    }

    /// The batch's time as it is stored.
    pub(super) fn at(&self) -> String {
        self.batch.at.cut_to_micros().stored_text()
    }
}
