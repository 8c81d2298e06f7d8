//! A batch: each mutation, in order.

use std::collections::BTreeSet;

use headwater_model::{SessionId, WallTime};

use crate::apply::recorder::Recorder;
use crate::apply::{Failure, MutationFailure};
use crate::{Batch, ContentLimit, Mutation, Rows, Written};

/// A batch while it is being written.
pub(super) struct Writing<'a, R> {
    pub(super) rows: &'a mut R,
    pub(super) batch: &'a Batch,
    pub(super) limit: ContentLimit,
    pub(super) recorder: Recorder,
}

/// Writes a batch inside the transaction of `rows`, and describes what it did.
///
/// # Errors
/// [`Failure`]; part of the batch may be written then.
pub async fn apply<R: Rows>(
    rows: &mut R,
    batch: &Batch,
    limit: ContentLimit,
) -> Result<Written, Failure<R::Error>> {
    let recorder = Recorder::begin(rows, sessions(batch)).await?;
    let mut writing = Writing { rows, batch, limit, recorder };
    for (index, mutation) in batch.mutations.iter().enumerate() {
        writing.make(mutation).await.map_err(|failure| failure.at(index))?;
    }
    let Writing { rows, recorder, .. } = writing;
    Ok(Written { receipts: recorder.finish(rows).await? })
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

impl<R: Rows> Writing<'_, R> {
    async fn make(&mut self, mutation: &Mutation) -> Result<(), MutationFailure<R::Error>> {
        match mutation {
            Mutation::CreateMessage(new) => self.create_message(new).await,
            Mutation::AppendContent { message, offset_bytes, text } => {
                self.append(message, *offset_bytes, text).await
            }
            Mutation::UpdateMessage { message, patch } => self.update_message(message, patch).await,
            Mutation::UpdateTool { message, patch } => self.update_tool(message, patch).await,
            Mutation::Resolve { message, status } => self.resolve(message, status).await,
            Mutation::MoveMessage { message, to_session, to_turn } => {
                self.move_message(message, to_session, to_turn).await
            }
            Mutation::DeleteMessage { message } => self.delete_message(message).await,
            Mutation::CreateTurn(new) => self.create_turn(new).await,
            Mutation::CompleteTurn { turn, completed_at } => self.complete_turn(turn, *completed_at).await,
            Mutation::UpdateTurn { turn, patch } => self.update_turn(turn, patch).await,
            Mutation::DeleteTurn { turn } => self.delete_turn(turn).await,
        }
    }

    /// The batch's session.
    pub(super) fn session(&self) -> &str {
        self.batch.session.as_str()
    }

    /// The batch's time as the databases can keep it.
    pub(super) fn at(&self) -> WallTime {
        self.batch.at.cut_to_micros()
    }
}
