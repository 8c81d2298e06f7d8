//! What PostgreSQL's errors mean to a caller.

use deadpool_postgres::PoolError;
use headwater_store::{ReadError, ReadErrorKind, WriteError, WriteErrorKind};
use tokio_postgres::error::SqlState;

/// An error of the pool or of a statement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// No connection was to be had.
    #[error("no connection")]
    Pool(#[from] PoolError),
    /// A statement failed.
    #[error("a statement failed")]
    Statement(#[from] tokio_postgres::Error),
}

impl Failed {
    fn state(&self) -> Option<&SqlState> {
        match self {
            Self::Pool(_) => None,
            Self::Statement(error) => error.code(),
        }
    }

    /// Whether the same transaction may go through when it is tried again: PostgreSQL chose it to give way, or the connection was lost
    /// before the commit.
    pub(crate) fn gives_way(&self) -> bool {
        let chosen = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        self.state().is_some_and(|state| chosen.contains(state)) || self.is_lost()
    }

    /// Whether the connection is gone.
    pub(crate) fn is_lost(&self) -> bool {
        let gone = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
        match self {
            Self::Pool(_) => false,
            Self::Statement(error) => {
                error.is_closed()
                    || error.code().is_some_and(|state| gone.contains(state))
                    || error.code().is_none()
            }
        }
    }

    /// The error of a write that was not committed.
    pub(crate) fn of_write(self) -> WriteError {
        let kind = match self.state() {
            Some(state)
                if *state == SqlState::READ_ONLY_SQL_TRANSACTION
                    || *state == SqlState::INSUFFICIENT_PRIVILEGE =>
            {
                WriteErrorKind::ReadOnly
            }
            Some(state) if *state == SqlState::DISK_FULL => WriteErrorKind::Full,
            _ if self.gives_way() || matches!(self, Self::Pool(_)) => WriteErrorKind::Busy(Box::new(self)),
            _ => WriteErrorKind::Storage(Box::new(self)),
        };
        kind.into()
    }

    /// The error of a read.
    pub(crate) fn of_read(self) -> ReadError {
        let unavailable = matches!(self, Self::Pool(_)) || self.gives_way();
        let kind = if unavailable {
            ReadErrorKind::Unavailable(Box::new(self))
        } else {
            ReadErrorKind::Storage(Box::new(self))
        };
        kind.into()
    }
}
