//! What SQLite's errors mean to a caller.

use headwater_store::{ReadError, ReadErrorKind, WriteError, WriteErrorKind};
use rusqlite::ErrorCode;

/// The error of a write. No constraint of the schema is hit by what the store checks before; one that is comes from another program's
/// trigger or index.
pub(crate) fn write_error(error: rusqlite::Error) -> WriteError {
    let error = without_text(error);
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
    let error = without_text(error);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::CannotOpen) => {
            ReadErrorKind::Unavailable(Box::new(error))
        }
        _ => ReadErrorKind::Storage(Box::new(error)),
    }
    .into()
}

/// The error without SQLite's message: a trigger of another program may quote a row in it.
fn without_text(error: rusqlite::Error) -> rusqlite::Error {
    if let rusqlite::Error::SqliteFailure(code, _) = error {
        return rusqlite::Error::SqliteFailure(code, None);
    }
    error
}
