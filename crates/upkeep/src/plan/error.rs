//! Why a database cannot be surveyed.

use rusqlite::ErrorCode;

/// Why a database cannot be surveyed for a plan or for statistics. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot survey the database: {kind}")]
pub struct PlanError {
    /// What is in the way.
    #[source]
    pub kind: PlanErrorKind,
}

/// What is in the way of a survey.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanErrorKind {
    /// The selection names a session that has no row.
    #[error("no session {0}")]
    UnknownSession(String),
    /// The selection names a project without a session.
    #[error("no session of project {0}")]
    UnknownProject(String),
    /// Whole sessions are selected and nothing says which.
    #[error("class sessions needs named sessions, an age, or a number of sessions to keep")]
    EverySession,
    /// A table that rows are named in has no rowid.
    #[error("table {0} has no rowid")]
    NoRowid(&'static str),
    /// The text encoding of the database is not UTF-8.
    #[error("the database stores text as {0}, not as UTF-8")]
    Encoding(String),
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Another process holds a lock that excludes reading.
    #[error("locked by another process")]
    Busy,
    /// SQLite finds the file damaged.
    #[error("the database is damaged")]
    Damaged,
    /// The database cannot be opened, or changed where no lock keeps writers away.
    #[error(transparent)]
    Open(crate::OpenError),
    /// Any other error of SQLite.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
}

impl From<PlanErrorKind> for PlanError {
    fn from(kind: PlanErrorKind) -> Self {
        Self { kind }
    }
}

impl From<rusqlite::Error> for PlanError {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => PlanErrorKind::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => PlanErrorKind::Damaged,
            _ => PlanErrorKind::Sqlite(error),
        };
        Self { kind }
    }
}

impl From<crate::OpenError> for PlanError {
    fn from(error: crate::OpenError) -> Self {
        Self { kind: PlanErrorKind::Open(error) }
    }
}
