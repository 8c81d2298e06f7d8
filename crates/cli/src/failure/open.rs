//! Databases that cannot be opened.

use headwater_upkeep::{OpenError, OpenErrorKind};

use super::Failure;
use crate::status::Status;

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::from(&error)
    }
}

impl From<&OpenError> for Failure {
    fn from(error: &OpenError) -> Self {
        let (status, code) = explain(&error.kind);
        let hint = error.kind.advice().unwrap_or("nothing was changed");
        Self::new(status, code, error).with_hint(hint)
    }
}

/// The exit status and the code of a database that cannot be opened, also where another error carries it.
pub(super) fn explain(kind: &OpenErrorKind) -> (Status, &'static str) {
    match kind {
        OpenErrorKind::NotFound => (Status::Other, "not-found"),
        OpenErrorKind::InMemory => (Status::Usage, "in-memory"),
        OpenErrorKind::InvalidPath => (Status::Usage, "invalid-path"),
        OpenErrorKind::PathTooLong { .. } => (Status::Usage, "path-too-long"),
        OpenErrorKind::Directory => (Status::Damaged, "directory"),
        OpenErrorKind::NotAFile => (Status::Damaged, "not-a-file"),
        OpenErrorKind::SymlinkLoop => (Status::Other, "symlink-loop"),
        OpenErrorKind::SideFileNotAFile { .. } => (Status::Damaged, "side-file-not-a-file"),
        OpenErrorKind::NewerFormat => (Status::Damaged, "newer-format"),
        OpenErrorKind::Encoding { .. } => (Status::Damaged, "encoding"),
        OpenErrorKind::TooManyFiles => (Status::Other, "too-many-files"),
        OpenErrorKind::Empty => (Status::Damaged, "empty-file"),
        OpenErrorKind::NotADatabase => (Status::Damaged, "not-a-database"),
        OpenErrorKind::Damaged => (Status::Damaged, "damaged"),
        OpenErrorKind::WrongSchema { .. } => (Status::Damaged, "wrong-schema"),
        OpenErrorKind::ConversationStore => (Status::Damaged, "conversation-store"),
        OpenErrorKind::UnknownLayout { .. } => (Status::Damaged, "unknown-layout"),
        OpenErrorKind::SchemaTooLarge => (Status::Damaged, "schema-too-large"),
        OpenErrorKind::NetworkFileSystem { .. } => (Status::Damaged, "network-file-system"),
        OpenErrorKind::PermissionDenied => (Status::Other, "permission-denied"),
        OpenErrorKind::SideFileDenied { .. } => (Status::Other, "side-file-denied"),
        OpenErrorKind::ReadOnlyFolder => (Status::Other, "read-only-folder"),
        OpenErrorKind::Busy => (Status::Blocked, "busy"),
        OpenErrorKind::NeedsRecovery => (Status::Blocked, "needs-recovery"),
        OpenErrorKind::Replaced => (Status::Blocked, "replaced"),
        OpenErrorKind::ChangedWhileReading => (Status::Blocked, "changed-while-reading"),
        OpenErrorKind::HeldForReading => (Status::Other, "held-for-reading"),
        OpenErrorKind::Io(_) => (Status::Other, "io"),
        OpenErrorKind::Sqlite(_) => (Status::Other, "sqlite"),
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io;
    use std::path::PathBuf;

    #[test]
    fn each_kind_has_its_status_and_its_own_code() {
        let kinds = [
            (OpenErrorKind::NotFound, 1),
            (OpenErrorKind::InMemory, 2),
            (OpenErrorKind::InvalidPath, 2),
            (OpenErrorKind::PathTooLong { bytes: 600 }, 2),
            (OpenErrorKind::Directory, 5),
            (OpenErrorKind::NotAFile, 5),
            (OpenErrorKind::SymlinkLoop, 1),
            (OpenErrorKind::SideFileNotAFile { suffix: "-shm" }, 5),
            (OpenErrorKind::NewerFormat, 5),
            (OpenErrorKind::Encoding { encoding: "UTF-16le".to_owned() }, 5),
            (OpenErrorKind::TooManyFiles, 1),
            (OpenErrorKind::Empty, 5),
            (OpenErrorKind::NotADatabase, 5),
            (OpenErrorKind::Damaged, 5),
            (OpenErrorKind::WrongSchema { found: vec!["t\x1b".to_owned()], tables: 1 }, 5),
            (OpenErrorKind::ConversationStore, 5),
            (OpenErrorKind::UnknownLayout { missing: Vec::new() }, 5),
            (OpenErrorKind::SchemaTooLarge, 5),
            (OpenErrorKind::NetworkFileSystem { name: "nfs" }, 5),
            (OpenErrorKind::PermissionDenied, 1),
            (OpenErrorKind::SideFileDenied { suffix: "-wal" }, 1),
            (OpenErrorKind::ReadOnlyFolder, 1),
            (OpenErrorKind::Busy, 3),
            (OpenErrorKind::NeedsRecovery, 3),
            (OpenErrorKind::Replaced, 3),
            (OpenErrorKind::ChangedWhileReading, 3),
            (OpenErrorKind::HeldForReading, 1),
            (OpenErrorKind::Io(io::Error::from(io::ErrorKind::Other)), 1),
        ];
        let mut codes = BTreeMap::new();
        for (kind, status) in kinds {
            let failure = Failure::from(OpenError { path: PathBuf::from("/a\nb"), kind });
            assert_eq!(failure.status.code(), status, "{}", failure.code);
            assert!(failure.message.starts_with("cannot open /a\\nb: "), "{}", failure.message);
            assert!(failure.hint.is_some(), "{}", failure.code);
            assert!(!failure.message.contains('\x1b'), "{}", failure.message);
            assert_eq!(codes.insert(failure.code, status), None, "{} twice", failure.code);
        }
    }
}
