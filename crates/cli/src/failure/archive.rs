//! Archives for undo.

use headwater_upkeep::undo::{ArchiveError, ArchiveErrorKind};

use super::{DAMAGED_HINT, Failure};
use crate::status::Status;

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let (status, code, hint) = explain(&error.kind);
        Self::new(status, code, error).with_hint(hint)
    }
}

pub(super) fn explain(kind: &ArchiveErrorKind) -> (Status, &'static str, &'static str) {
    match kind {
        ArchiveErrorKind::NotAnArchive => {
            (Status::Damaged, "not-an-archive", "name another file with --archive")
        }
        ArchiveErrorKind::Newer { .. } => {
            (Status::Damaged, "newer-archive", "use the newer version of headwater")
        }
        ArchiveErrorKind::OtherDatabase => {
            (Status::Blocked, "other-database", "name the database that the archive was made from with --db")
        }
        ArchiveErrorKind::Garbled { .. } => {
            (Status::Damaged, "garbled-archive", "the frames before the damage can be used")
        }
        ArchiveErrorKind::Torn { .. } => {
            (Status::Damaged, "torn-archive", "the frames before the end can be used")
        }
        ArchiveErrorKind::RowChanged => (Status::Blocked, "row-changed", "run the same command again"),
        ArchiveErrorKind::NoRoom => {
            (Status::Other, "no-room", "make room for the archive; nothing was removed")
        }
        ArchiveErrorKind::Damaged => (Status::Damaged, "damaged", DAMAGED_HINT),
        ArchiveErrorKind::Io(_) | ArchiveErrorKind::Sqlite(_) => {
            (Status::Other, "archive", "nothing was removed")
        }
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", "nothing was removed"),
    }
}
