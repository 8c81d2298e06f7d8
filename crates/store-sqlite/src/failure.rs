//! What SQLite's errors mean to a caller.

use headwater_store::{BadMutation, ReadError, ReadErrorKind, WriteError, WriteErrorKind};
use rusqlite::ErrorCode;

/// Why one change was not made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It asks for something that cannot be. The transaction goes on without it.
    Refused(WriteErrorKind),
    /// SQLite answered with an error. The transaction is lost.
    Sqlite(rusqlite::Error),
}

impl From<WriteErrorKind> for Failure {
    fn from(kind: WriteErrorKind) -> Self {
        Self::Refused(kind)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Why one mutation was not made.
#[derive(Debug)]
pub(crate) enum MutationFailure {
    /// It asks for something that cannot be.
    Refused(BadMutation),
    /// SQLite answered with an error.
    Sqlite(rusqlite::Error),
}

impl MutationFailure {
    /// The failure of a batch whose mutation at `index` it is.
    pub(crate) fn at(self, index: usize) -> Failure {
        match self {
            Self::Refused(reason) => WriteErrorKind::Refused { index, reason }.into(),
            Self::Sqlite(error) => error.into(),
        }
    }
}

impl From<BadMutation> for MutationFailure {
    fn from(reason: BadMutation) -> Self {
        Self::Refused(reason)
    }
}

impl From<rusqlite::Error> for MutationFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// The error of a write. No constraint of the schema is hit by what the store checks before; one that is comes from another program's
/// trigger or index.
pub(crate) fn write_error(error: rusqlite::Error) -> WriteError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => WriteErrorKind::Busy(Box::new(error)),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => WriteErrorKind::ReadOnly,
        Some(ErrorCode::DiskFull) => WriteErrorKind::Full,
        _ => WriteErrorKind::Storage(Box::new(error)),
    }
    .into()
}

/// The error of a read.
pub(crate) fn read_error(error: rusqlite::Error) -> ReadError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::CannotOpen) => {
            ReadErrorKind::Unavailable(Box::new(error))
        }
        _ => ReadErrorKind::Storage(Box::new(error)),
    }
    .into()
}
