//! Salvages that saved nothing.

use headwater_upkeep::salvage::{SalvageError, SalvageErrorKind};

use super::{CANCELLED_HINT, Failure, open};
use crate::status::Status;

impl From<SalvageError> for Failure {
    fn from(error: SalvageError) -> Self {
        let (status, code, hint) = explain(&error.kind);
        Self::new(status, code, error).with_hint(hint)
    }
}

fn explain(kind: &SalvageErrorKind) -> (Status, &'static str, &'static str) {
    match kind {
        SalvageErrorKind::Source(kind) => {
            let (status, code) = open::explain(kind);
            (status, code, kind.advice().unwrap_or("nothing was changed"))
        }
        SalvageErrorKind::NoPages => {
            (Status::Damaged, "no-pages", "the file is no database, or nothing is left of it: use a backup")
        }
        SalvageErrorKind::SchemaLost => (Status::Damaged, "schema-lost", "use a backup; nothing was changed"),
        SalvageErrorKind::TargetExists => {
            (Status::Blocked, "exists", "name a file that does not exist; nothing was changed")
        }
        SalvageErrorKind::TargetInUse => {
            (Status::Blocked, "target-in-use", "wait until the other salvage is done")
        }
        SalvageErrorKind::Cancelled => (Status::Other, "cancelled", CANCELLED_HINT),
        SalvageErrorKind::VerificationFailed => {
            (Status::Other, "verification", "check the disk that the new file is on; nothing was changed")
        }
        SalvageErrorKind::Write(_) => {
            (Status::Other, "write", "name a file on a disk with more room; nothing was changed")
        }
        SalvageErrorKind::Io(_) => (Status::Other, "io", "nothing was changed"),
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", "nothing was changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_follow_the_kind() {
        for (kind, status) in [
            (SalvageErrorKind::NoPages, 5),
            (SalvageErrorKind::SchemaLost, 5),
            (SalvageErrorKind::TargetExists, 3),
            (SalvageErrorKind::TargetInUse, 3),
            (SalvageErrorKind::Cancelled, 1),
            (SalvageErrorKind::VerificationFailed, 1),
            (SalvageErrorKind::Source(headwater_upkeep::OpenErrorKind::Empty), 5),
        ] {
            let failure = Failure::from(SalvageError { path: "/d".into(), kind });
            assert_eq!(failure.status.code(), status, "{}", failure.code);
        }
    }
}
