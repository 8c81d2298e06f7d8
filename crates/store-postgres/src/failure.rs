//! What PostgreSQL's errors mean to a caller.

use std::error::Error;
use std::io;

use deadpool_postgres::PoolError;
use headwater_store::{ReadError, ReadErrorKind, WriteError, WriteErrorKind};
use tokio_postgres::error::SqlState;

/// An error of the pool or of a statement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// No connection was to be had in time.
    #[error("no connection")]
    Pool(#[source] Box<dyn Error + Send + Sync>),
    /// PostgreSQL answered with an error. Its message, detail and context may quote a row, so only the code is kept.
    #[error("PostgreSQL answers with SQLSTATE {}", .0.code())]
    State(SqlState),
    /// The connection is gone.
    #[error("the connection to PostgreSQL is lost")]
    Lost,
    /// PostgreSQL's answer is not what was asked for.
    #[error("{0}")]
    Answer(String),
}

impl From<PoolError> for Failed {
    fn from(error: PoolError) -> Self {
        Self::Pool(match error {
            PoolError::Backend(error) => Box::new(Self::from(error)),
            other @ (PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_)) => Box::new(other),
        })
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&tokio_postgres::Error> for Failed {
    fn from(error: &tokio_postgres::Error) -> Self {
        match error.code() {
            Some(state) => Self::State(state.clone()),
            None if error.is_closed() || error.source().is_some_and(<dyn Error>::is::<io::Error>) => {
                Self::Lost
            }
            None => Self::Answer(error.to_string()),
        }
    }
}

/// The server chose this transaction to give way to another one.
const CHOSEN: [SqlState; 2] = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];

/// What was looked up before was removed or added by another transaction since. Trying again finds it so, and says what is wrong.
const OVERTAKEN: [SqlState; 2] = [SqlState::FOREIGN_KEY_VIOLATION, SqlState::UNIQUE_VIOLATION];

/// The server ended the connection.
const GONE: [SqlState; 6] = [
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::DATABASE_DROPPED,
    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    SqlState::IDLE_SESSION_TIMEOUT,
];

/// Something was in the way that will not be for long.
const PASSING: [SqlState; 3] =
    [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED, SqlState::TOO_MANY_CONNECTIONS];

impl Failed {
    fn is_one_of(&self, states: &[SqlState]) -> bool {
        matches!(self, Self::State(state) if states.contains(state))
    }

    /// Whether the same transaction may go through when it is tried again.
    pub(crate) fn gives_way(&self) -> bool {
        self.is_lost() || self.is_one_of(&CHOSEN) || self.is_one_of(&OVERTAKEN)
    }

    /// Whether the connection is gone.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost) || self.is_one_of(&GONE)
    }

    /// Whether the same call may go through later.
    fn passes(&self) -> bool {
        matches!(self, Self::Pool(_)) || self.is_lost() || self.is_one_of(&CHOSEN) || self.is_one_of(&PASSING)
    }

    /// The error of a write that was not committed.
    pub(crate) fn of_write(self) -> WriteError {
        let read_only = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE];
        let kind = if self.is_one_of(&read_only) {
            WriteErrorKind::ReadOnly
        } else if self.is_one_of(&[SqlState::DISK_FULL]) {
            WriteErrorKind::Full
        } else if self.passes() {
            WriteErrorKind::Busy(Box::new(self))
        } else {
            WriteErrorKind::Storage(Box::new(self))
        };
        kind.into()
    }

    /// The error of a read.
    pub(crate) fn of_read(self) -> ReadError {
        let kind = if self.passes() {
            ReadErrorKind::Unavailable(Box::new(self))
        } else {
            ReadErrorKind::Storage(Box::new(self))
        };
        kind.into()
    }
}

/// Why something was not read.
pub(crate) enum Unread {
    /// It cannot be answered.
    Refused(ReadErrorKind),
    /// The database answered with an error.
    Failed(Failed),
}

impl From<tokio_postgres::Error> for Unread {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Failed> for Unread {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}
