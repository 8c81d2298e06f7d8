//! Why a database cannot be surveyed.

use rusqlite::ErrorCode;

/// Why a database cannot be surveyed for a plan or for statistics. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", .kind.preface())]
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
    #[error("no session with the id {0}")]
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

impl PlanErrorKind {
    /// Nothing is wrong with the database where the selection names what it does not have.
    fn preface(&self) -> &'static str {
        let is_of_selection =
            matches!(self, Self::UnknownSession(_) | Self::UnknownProject(_) | Self::EverySession);
        if is_of_selection { "" } else { "cannot survey the database: " }
    }
}

impl From<PlanErrorKind> for PlanError {
    fn from(kind: PlanErrorKind) -> Self {
        Self { kind }
    }
}

impl From<rusqlite::Error> for PlanError {
    fn from(error: rusqlite::Error) -> Self {
        // Rows are looked up by what an index of the same state names: what is not there then is missing.
        if is_missing_row(&error) || crate::OpenErrorKind::is_damage(&error) {
            return Self { kind: PlanErrorKind::Damaged };
        }
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => PlanErrorKind::Busy,
            _ => PlanErrorKind::Sqlite(error),
        };
        Self { kind }
    }
}

/// Whether a row was looked up by its rowid and is not there, through a statement or through a handle on its value.
fn is_missing_row(error: &rusqlite::Error) -> bool {
    if let rusqlite::Error::SqliteFailure(_, Some(message)) = error {
        return message.starts_with("no such rowid");
    }
    matches!(error, rusqlite::Error::QueryReturnedNoRows)
}

impl From<crate::OpenError> for PlanError {
    fn from(error: crate::OpenError) -> Self {
        Self { kind: PlanErrorKind::Open(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_only_an_index_has_is_damage() {
        let connection = crate::fixture::connect(std::path::Path::new(":memory:"));
        connection.execute_batch("CREATE TABLE t (data)").unwrap();
        let handle = connection.blob_open("main", "t", "data", 7, true).map(drop).unwrap_err();
        let statement =
            connection.query_row("SELECT data FROM t WHERE rowid = 7", [], |_| Ok(())).unwrap_err();
        for error in [handle, statement] {
            let text = error.to_string();
            assert!(matches!(PlanError::from(error).kind, PlanErrorKind::Damaged), "{text}");
        }
        let other = connection.execute_batch("SELECT nothing").unwrap_err();
        assert!(matches!(PlanError::from(other).kind, PlanErrorKind::Sqlite(_)));
    }
}
