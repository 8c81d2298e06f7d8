//! Reading.

use async_trait::async_trait;
use headwater_model::conversation::{MessageRecord, SessionRecord, TurnRecord};
use headwater_model::{Epoch, Revision, SessionId};

use crate::{Page, PageLimit, PageQuery, ReadError};

/// Reads the rows of conversations. Existence, rows and revision of each answer come from one short read transaction; none spans two
/// calls (C7).
#[async_trait]
pub trait ConversationSource: Send + Sync {
    /// The name of this life of the store (C4, C36).
    async fn epoch(&self) -> Result<Epoch, ReadError>;

    /// The row of a session; none where there is no such session.
    async fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError>;

    /// Sessions by the bytes of their ids, behind `after`.
    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: PageLimit,
    ) -> Result<Vec<SessionRecord>, ReadError>;

    /// A page of messages.
    ///
    /// # Errors
    /// [`ReadErrorKind::UnknownSession`](crate::ReadErrorKind::UnknownSession) where there is no such session, and
    /// [`ReadErrorKind::RevisionMoved`](crate::ReadErrorKind::RevisionMoved) where it is not at the expected revision.
    async fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError>;

    /// A page of the turns that are visible; one that is only reserved shows once a message names it. The errors are those of
    /// [`ConversationSource::messages`]. Authors in the selection say nothing about turns.
    async fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError>;

    /// The revision of a session; none where there is no such session. A session without a stored revision is at zero (C2).
    async fn revision(&self, session: &SessionId) -> Result<Option<Revision>, ReadError> {
        Ok(self.revisions(std::slice::from_ref(session)).await?.pop().flatten())
    }

    /// The revisions of many sessions, in the order of `sessions`, none where there is no such session. Reads no payload (C19).
    async fn revisions(&self, sessions: &[SessionId]) -> Result<Vec<Option<Revision>>, ReadError>;
}
