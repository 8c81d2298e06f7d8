//! Databases that cannot be opened.

use headwater_upkeep::{OpenError, OpenErrorKind};

use super::Failure;
use crate::render::text::printable;
use crate::status::Status;

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::from(&error)
    }
}

impl From<&OpenError> for Failure {
    fn from(error: &OpenError) -> Self {
        let (status, code, hint) = explain(&error.kind);
        let path = error.path.display().to_string();
        let message = format!("cannot open {}: {}", printable(&path), error.kind);
        Self::new(status, code, message).with_hint(hint)
    }
}

fn explain(kind: &OpenErrorKind) -> (Status, &'static str, &'static str) {
    match kind {
        OpenErrorKind::NotFound => (
            Status::Other,
            "not-found",
            "`headwater locate` shows where OpenCode keeps its database; name another with --db",
        ),
        OpenErrorKind::NotAFile => (Status::Damaged, "not-a-file", "give the database file itself with --db"),
        OpenErrorKind::Empty => (
            Status::Damaged,
            "empty-file",
            "the file holds no database; restore it from a backup or name another with --db",
        ),
        OpenErrorKind::NotADatabase => (
            Status::Damaged,
            "not-a-database",
            "give the path of an OpenCode database with --db; encrypted files are not supported",
        ),
        OpenErrorKind::PermissionDenied => (
            Status::Other,
            "permission-denied",
            "run as the user who owns the file, or change its permissions and those of its folder",
        ),
        OpenErrorKind::Busy => (
            Status::Blocked,
            "busy",
            "`headwater locate` names the processes that hold the database; stop them and try again",
        ),
        OpenErrorKind::Damaged => (
            Status::Damaged,
            "damaged",
            "`headwater check` names the damage; `headwater salvage` saves what can be read into a new file",
        ),
        OpenErrorKind::WrongSchema { .. } => (
            Status::Damaged,
            "wrong-schema",
            "this is a database of another program, or of an OpenCode layout that is not supported",
        ),
        OpenErrorKind::Io(_) => (Status::Other, "io", "the file system refused; nothing was changed"),
        OpenErrorKind::Sqlite(_) => (Status::Other, "sqlite", "SQLite refused; nothing was changed"),
        kind => {
            let (status, code) = explain_rare(kind);
            (status, code, kind.advice().unwrap_or("nothing was changed"))
        }
    }
}

fn explain_rare(kind: &OpenErrorKind) -> (Status, &'static str) {
    match kind {
        OpenErrorKind::InMemory => (Status::Other, "in-memory"),
        OpenErrorKind::Directory => (Status::Damaged, "directory"),
        OpenErrorKind::SymlinkLoop => (Status::Other, "symlink-loop"),
        OpenErrorKind::PathTooLong { .. } => (Status::Other, "path-too-long"),
        OpenErrorKind::InvalidPath => (Status::Other, "invalid-path"),
        OpenErrorKind::SideFileDenied { .. } => (Status::Other, "side-file-denied"),
        OpenErrorKind::ReadOnlyFolder => (Status::Other, "read-only-folder"),
        OpenErrorKind::NetworkFileSystem { .. } => (Status::Damaged, "network-file-system"),
        OpenErrorKind::NeedsRecovery => (Status::Blocked, "needs-recovery"),
        OpenErrorKind::UnknownLayout { .. } => (Status::Damaged, "unknown-layout"),
        OpenErrorKind::SchemaTooLarge => (Status::Damaged, "schema-too-large"),
        OpenErrorKind::Replaced => (Status::Blocked, "replaced"),
        OpenErrorKind::ChangedWhileReading => (Status::Blocked, "changed-while-reading"),
        OpenErrorKind::HeldForReading => (Status::Blocked, "held-for-reading"),
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;

    #[test]
    fn each_kind_has_its_status_and_its_own_code() {
        let other = || io::Error::from(io::ErrorKind::Other);
        let kinds = [
            (OpenErrorKind::NotFound, 1),
            (OpenErrorKind::NotAFile, 5),
            (OpenErrorKind::Empty, 5),
            (OpenErrorKind::NotADatabase, 5),
            (OpenErrorKind::PermissionDenied, 1),
            (OpenErrorKind::Busy, 3),
            (OpenErrorKind::Damaged, 5),
            (OpenErrorKind::WrongSchema { found: vec![], tables: 0 }, 5),
            (OpenErrorKind::Directory, 5),
            (OpenErrorKind::NeedsRecovery, 3),
            (OpenErrorKind::ChangedWhileReading, 3),
            (OpenErrorKind::Io(other()), 1),
        ];
        let mut codes = Vec::new();
        for (kind, status) in kinds {
            let failure = Failure::from(OpenError { path: PathBuf::from("/a\nb"), kind });
            assert_eq!(failure.status.code(), status, "{}", failure.code);
            assert!(failure.message.starts_with("cannot open /a\\nb: "), "{}", failure.message);
            assert!(failure.hint.is_some(), "{}", failure.code);
            assert!(!codes.contains(&failure.code), "{}", failure.code);
            codes.push(failure.code);
        }
    }
}
