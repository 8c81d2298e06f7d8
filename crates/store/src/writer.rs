//! Writing.

use async_trait::async_trait;
use headwater_model::SessionId;
use headwater_model::conversation::SessionRecord;

use crate::{Batch, NewSession, WriteError, Written};

/// Changes the rows of conversations. Each call is one transaction; what it answers was captured inside it and is known only once it is
/// committed (C5). Dropping the future does not undo a transaction that has begun.
#[async_trait]
pub trait ConversationWriter: Send + Sync {
    /// Adds a session to a task. Repeating it with the same task changes nothing.
    async fn create_session(&self, session: NewSession) -> Result<SessionRecord, WriteError>;

    /// Removes a session with its turns, messages and revision: absence is how its end is seen (C2).
    ///
    /// # Errors
    /// [`WriteErrorKind::UnknownSession`](crate::WriteErrorKind::UnknownSession) where there is none.
    async fn delete_session(&self, session: &SessionId) -> Result<(), WriteError>;

    /// Writes a batch, whole or not at all.
    async fn apply(&self, batch: Batch) -> Result<Written, WriteError>;
}
