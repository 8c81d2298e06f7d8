//! Why a read or a write did not happen. No error holds content.

use headwater_model::{ByteCount, Revision};

/// Whether repeating the same call can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same call fails again.
    Never,
    /// The same call may succeed as it is: another program was in the way, or the connection was lost.
    Later,
    /// First read what has changed, then build the call anew.
    AfterRead,
}

/// A read that did not happen.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReadError(#[from] pub ReadErrorKind);

/// Why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// No session has this id.
    #[error("no such session")]
    UnknownSession,
    /// The caller expected another revision (C9).
    #[error("the session is at revision {current}")]
    RevisionMoved {
        /// Where the source is.
        current: Revision,
    },
    /// The database could not be reached in time, or all connections are taken.
    #[error("the conversation store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database answered with an error.
    #[error("the conversation store could not be read")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ReadError {
    /// Whether repeating the read can help.
    pub const fn retry(&self) -> Retry {
        match self.0 {
            ReadErrorKind::UnknownSession | ReadErrorKind::Storage(_) => Retry::Never,
            ReadErrorKind::RevisionMoved { .. } => Retry::AfterRead,
            ReadErrorKind::Unavailable(_) => Retry::Later,
        }
    }
}

/// A batch that was not written: nothing of it was.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct WriteError(#[from] pub WriteErrorKind);

/// Why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// One of the mutations asks for something that cannot be.
    #[error("mutation {index}: {reason}")]
    Refused {
        /// Its position in the batch.
        index: usize,
        /// What is wrong.
        reason: BadMutation,
    },
    /// No session has this id.
    #[error("no such session")]
    UnknownSession,
    /// No task has this id.
    #[error("no such task")]
    UnknownTask,
    /// The id is taken by another session.
    #[error("the id of the session is taken")]
    DuplicateSession,
    /// Another program holds the database, all connections are taken, or the transaction was chosen to give way to another and the
    /// retries are used up.
    #[error("the conversation store is busy")]
    Busy(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection was lost while committing: the batch may be in the database or not. Creates are idempotent and appends carry an
    /// offset, so the same batch can be sent again.
    #[error("the connection was lost during the commit; the batch may or may not be written")]
    Unknown(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file or database is read-only.
    #[error("the conversation store is read-only")]
    ReadOnly,
    /// The disk is full.
    #[error("no room left for the conversation store")]
    Full,
    /// The database answered with an error.
    #[error("the conversation store could not be written")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl WriteError {
    /// Whether repeating the batch can help.
    pub const fn retry(&self) -> Retry {
        match &self.0 {
            WriteErrorKind::Busy(_) | WriteErrorKind::Unknown(_) | WriteErrorKind::Full => Retry::Later,
            WriteErrorKind::Refused { reason, .. } => reason.retry(),
            WriteErrorKind::UnknownSession
            | WriteErrorKind::UnknownTask
            | WriteErrorKind::DuplicateSession
            | WriteErrorKind::ReadOnly
            | WriteErrorKind::Storage(_) => Retry::Never,
        }
    }
}

/// What is wrong with a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMutation {
    /// No message of the session has this id.
    #[error("no such message in the session")]
    UnknownMessage,
    /// No turn of the session has this id.
    #[error("no such turn in the session")]
    UnknownTurn,
    /// The id belongs to another record: a creation is repeated with other values, or stands in another session.
    #[error("the id is taken by another record")]
    DuplicateId,
    /// The message is not as long as the append expects (C10).
    #[error("the message has {actual_bytes} bytes, not {expected_bytes}")]
    AppendConflict {
        /// Bytes that the append expects to be there.
        expected_bytes: u64,
        /// Bytes that are there.
        actual_bytes: u64,
    },
    /// The content would be larger than the store allows.
    #[error("content of {bytes} bytes is larger than {limit} bytes")]
    TooLarge {
        /// Bytes that the content would have.
        bytes: ByteCount,
        /// Bytes that it may have.
        limit: ByteCount,
    },
    /// The metadata given, or stored where it is to be merged with, is not one JSON object with distinct members.
    #[error("metadata is not a JSON object with distinct members")]
    InvalidMetadata,
    /// An imported prompt must be later than the prompts that are there.
    #[error("the time of a prompt must be later than that of the prompts before it")]
    NotAfterPrompts,
    /// The message is not a tool call.
    #[error("the message is not a tool call")]
    NotATool,
    /// The message is not a request for permission or clarification.
    #[error("the message asks for nothing")]
    NotARequest,
    /// The request has been answered before.
    #[error("the request was answered before")]
    AlreadyResolved,
    /// The row belongs to one that is not there, or a rule of the database refuses it.
    #[error("a rule of the database refuses the row; what it belongs to may be missing")]
    RefusedByDatabase,
    /// A value that the column of this database cannot keep.
    #[error("a value that this database cannot keep")]
    NotStorable,
    /// Text with a NUL character, which PostgreSQL cannot keep; refused by every backend alike.
    #[error("text holds a NUL character")]
    NulCharacter,
}

impl BadMutation {
    /// Whether repeating can help.
    pub const fn retry(self) -> Retry {
        match self {
            Self::AppendConflict { .. } | Self::AlreadyResolved | Self::NotAfterPrompts => Retry::AfterRead,
            Self::UnknownMessage
            | Self::UnknownTurn
            | Self::DuplicateId
            | Self::TooLarge { .. }
            | Self::InvalidMetadata
            | Self::NotATool
            | Self::NotARequest
            | Self::RefusedByDatabase
            | Self::NotStorable
            | Self::NulCharacter => Retry::Never,
        }
    }
}
