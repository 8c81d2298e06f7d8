//! Plans that cannot be made.

use headwater_upkeep::plan::{PlanError, PlanErrorKind};

use super::{CANCELLED_HINT, DAMAGED_HINT, Failure, NAME_A_SESSION, WAIT_HINT};
use crate::status::Status;

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::from(&error)
    }
}

impl From<&PlanError> for Failure {
    fn from(error: &PlanError) -> Self {
        let (status, code, hint) = explain(&error.kind);
        Self::new(status, code, error).with_hint(hint)
    }
}

pub(super) fn explain(kind: &PlanErrorKind) -> (Status, &'static str, &'static str) {
    match kind {
        PlanErrorKind::UnknownSession(_) => (Status::Usage, "unknown-session", NAME_A_SESSION),
        PlanErrorKind::UnknownProject(_) => {
            (Status::Usage, "unknown-project", "`headwater sessions` lists the projects; nothing was changed")
        }
        PlanErrorKind::EverySession => (
            Status::Usage,
            "every-session",
            "add --session, --older-than or --keep-last; nothing was changed",
        ),
        PlanErrorKind::NoRowid(_) => {
            (Status::Damaged, "no-rowid", "this version does not know the layout: use a newer one")
        }
        PlanErrorKind::Encoding(_) => {
            (Status::Damaged, "encoding", "OpenCode writes UTF-8 only; this file was made by another program")
        }
        PlanErrorKind::Cancelled => (Status::Other, "cancelled", CANCELLED_HINT),
        PlanErrorKind::Busy => (Status::Blocked, "busy", WAIT_HINT),
        PlanErrorKind::Damaged => (Status::Damaged, "damaged", DAMAGED_HINT),
        PlanErrorKind::Open(error) => {
            let (status, code) = super::open::explain(&error.kind);
            (status, code, error.kind.advice().unwrap_or("nothing was changed"))
        }
        PlanErrorKind::Sqlite(_) => (Status::Other, "sqlite", "nothing was changed"),
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
            (PlanErrorKind::UnknownSession("ses_1\x1b".to_owned()), 2),
            (PlanErrorKind::UnknownProject("p".to_owned()), 2),
            (PlanErrorKind::EverySession, 2),
            (PlanErrorKind::NoRowid("part"), 5),
            (PlanErrorKind::Encoding("UTF-16le".to_owned()), 5),
            (PlanErrorKind::Cancelled, 1),
            (PlanErrorKind::Busy, 3),
            (PlanErrorKind::Damaged, 5),
        ] {
            let failure = Failure::from(PlanError { kind });
            assert_eq!(failure.status.code(), status, "{}", failure.code);
            assert!(!failure.message.contains('\x1b') && failure.hint.is_some(), "{failure:?}");
        }
    }
}
