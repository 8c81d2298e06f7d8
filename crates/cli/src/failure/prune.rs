//! Prunes that are refused or fail.

use headwater_upkeep::OpenErrorKind;
use headwater_upkeep::lock::LockError;
use headwater_upkeep::prune::{Blocked, PruneError, PruneErrorKind};
use headwater_wire::code::{BlockedReason, RetryAdvice};

use super::{DAMAGED_HINT, Failure, WAIT_HINT, archive, plan, state};
use crate::status::Status;

impl From<Blocked> for Failure {
    fn from(blocked: Blocked) -> Self {
        let status = match blocked.reason {
            BlockedReason::UnsupportedStorage => Status::Damaged,
            BlockedReason::Unavailable
            | BlockedReason::MaintenanceRequired
            | BlockedReason::Conflict
            | BlockedReason::NotDeletable => Status::Blocked,
        };
        let hint = match blocked.reason.retry_advice() {
            RetryAdvice::Never => "nothing was changed; the same request will be refused again",
            RetryAdvice::Later => "nothing was changed; repeat the command when the work in progress is over",
            RetryAdvice::AfterPreview => "nothing was changed; preview again and choose from what is there",
        };
        let message = format_args!("the prune is refused: {}", blocked.why);
        Self::new(status, blocked.reason.code(), message).with_hint(hint)
    }
}

impl From<PruneError> for Failure {
    fn from(error: PruneError) -> Self {
        let (status, code, hint) = match &error.kind {
            PruneErrorKind::State(error) => state::explain(&error.kind),
            PruneErrorKind::Archive(error) => archive::explain(&error.kind),
            PruneErrorKind::Lock(error) => lock(error),
            PruneErrorKind::Plan(error) => plan::explain(&error.kind),
            PruneErrorKind::DamagedReceipt => (
                Status::Damaged,
                "damaged-receipt",
                "a receipt in the database was changed by another program",
            ),
            PruneErrorKind::Sqlite(error) if OpenErrorKind::is_damage(error) => DAMAGED,
            PruneErrorKind::Sqlite(error) if OpenErrorKind::is_no_room(error) => NO_ROOM,
            PruneErrorKind::Sqlite(_) => (Status::Other, "sqlite", REPEAT),
            // Required because the enum may grow in another release of the library.
            _ => (Status::Other, "other", REPEAT),
        };
        Self::new(status, code, error).with_hint(hint)
    }
}

const REPEAT: &str = "repeat the same command: it finds out what was done and removes nothing twice";

const DAMAGED: (Status, &str, &str) = (Status::Damaged, "damaged", DAMAGED_HINT);
const NO_ROOM: (Status, &str, &str) = (
    Status::Other,
    "no-room",
    "make room on the disk of the database, or raise the limit on file sizes, and run the same command again; what was done so far stays done",
);

pub(super) fn lock(error: &LockError) -> (Status, &'static str, &'static str) {
    match error {
        LockError::Busy => (Status::Blocked, "busy", WAIT_HINT),
        LockError::LogPinned { .. } => (
            Status::Blocked,
            "log-pinned",
            "a reader holds the write-ahead log; `headwater locate` names it; what was done so far stays done",
        ),
        LockError::NotDurable(_) => (Status::Other, "not-durable", REPEAT),
        LockError::Sqlite(error) if OpenErrorKind::is_damage(error) => DAMAGED,
        LockError::Sqlite(error) if OpenErrorKind::is_no_room(error) => NO_ROOM,
        LockError::Sqlite(_) => (Status::Other, "sqlite", REPEAT),
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", REPEAT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_prune::KeptReason;
    use headwater_upkeep::prune::Why;
    use headwater_upkeep::state::{StateError, StateErrorKind};

    #[test]
    fn a_refusal_is_blocked_unless_the_storage_is_unknown() {
        for (why, status, code) in [
            (Why::Kept(KeptReason::Changed), 3, "conflict"),
            (Why::Kept(KeptReason::Executing), 3, "maintenance_required"),
            (Why::Kept(KeptReason::ToolUnfinished), 3, "not_deletable"),
            (Why::NoSuchItem, 3, "not_deletable"),
            (Why::Busy, 3, "maintenance_required"),
            (Why::Unsupported(headwater_upkeep::fence::Unsupported::Triggers), 5, "unsupported_storage"),
        ] {
            let failure = Failure::from(Blocked::from(why));
            assert_eq!((failure.status.code(), failure.code), (status, code));
        }
    }

    #[test]
    fn failures_carry_the_status_of_their_cause() {
        let state = |kind| PruneErrorKind::State(StateError { path: "/s".into(), kind });
        for (kind, status) in [
            (state(StateErrorKind::Busy), 3),
            (state(StateErrorKind::NoRoom), 1),
            (state(StateErrorKind::NotAStateFile), 5),
            (PruneErrorKind::Lock(LockError::Busy), 3),
            (PruneErrorKind::DamagedReceipt, 5),
        ] {
            let failure = Failure::from(PruneError { kind });
            assert_eq!(failure.status.code(), status, "{}", failure.code);
        }
    }
}
