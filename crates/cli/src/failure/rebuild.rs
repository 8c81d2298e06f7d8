//! Rebuilds, vacuums, backups and restores that did not happen.

use std::io;

use headwater_upkeep::OpenErrorKind;
use headwater_upkeep::rebuild::{RebuildError, RebuildErrorKind};

use super::{CANCELLED_HINT, DAMAGED_HINT, Failure, open, plan};
use crate::status::Status;

impl From<RebuildError> for Failure {
    fn from(error: RebuildError) -> Self {
        let (status, code, hint) = explain(&error.kind);
        Self::new(status, code, error).with_hint(hint)
    }
}

const IN_PLACE: &str =
    "run it again with --in-place, which needs more disk and a log of the size of the new file";

const NO_ROOM: (Status, &str, &str) = (
    Status::Other,
    "no-room",
    "make room on that disk, or raise the limit on file sizes (`ulimit -f`); nothing was changed",
);

fn is_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn explain(kind: &RebuildErrorKind) -> (Status, &'static str, &'static str) {
    match kind {
        RebuildErrorKind::Open(kind) => {
            let (status, code) = open::explain(kind);
            (status, code, kind.advice().unwrap_or("nothing was changed"))
        }
        RebuildErrorKind::Plan(error) => plan::explain(&error.kind),
        RebuildErrorKind::NetworkFileSystem { .. } => (
            Status::Damaged,
            "network-file-system",
            "run on the machine that has the disk, or work on a local copy",
        ),
        RebuildErrorKind::Replicated { .. } => {
            (Status::Blocked, "replicated", "stop the replication and remove its state; nothing was changed")
        }
        RebuildErrorKind::HardLinks { .. } => {
            (Status::Blocked, "hard-links", "remove the other names; nothing was changed")
        }
        RebuildErrorKind::DeletedLog { .. } => (
            Status::Blocked,
            "deleted-log",
            "stop that process: what it writes is lost when it ends; nothing was changed",
        ),
        RebuildErrorKind::InUse { .. } => {
            (Status::Blocked, "in-use", "stop OpenCode and whatever else has it open; nothing was changed")
        }
        RebuildErrorKind::NoLease { .. } => (Status::Blocked, "no-lease", IN_PLACE),
        RebuildErrorKind::NoExchange => (Status::Damaged, "no-exchange", IN_PLACE),
        RebuildErrorKind::NothingToGain { .. } => {
            (Status::Nothing, "nothing-to-gain", "--force rewrites it anyway; nothing was changed")
        }
        RebuildErrorKind::NoRoom { .. } => {
            (Status::Other, "no-room", "make room on that disk; nothing was changed")
        }
        RebuildErrorKind::PlanChanged => (
            Status::Blocked,
            "plan-changed",
            "run the same command again and look at the new plan; nothing was changed",
        ),
        RebuildErrorKind::Unsupported(_) => (Status::Damaged, "unsupported", "nothing was changed"),
        RebuildErrorKind::Damaged => (Status::Damaged, "damaged", DAMAGED_HINT),
        RebuildErrorKind::Verification(_) => (
            Status::Other,
            "verification",
            "the database is as it was; please report this with the message above",
        ),
        RebuildErrorKind::Replaced => (Status::Blocked, "replaced", "run the same command again"),
        RebuildErrorKind::Cancelled => (Status::Other, "cancelled", CANCELLED_HINT),
        RebuildErrorKind::Unconfirmed { .. } => (
            Status::Other,
            "unconfirmed",
            "check the disk, then delete the kept file once the database works",
        ),
        RebuildErrorKind::Unmerged { .. } => (
            Status::Other,
            "unmerged",
            "nothing is lost; the next program that opens the database merges the log",
        ),
        RebuildErrorKind::Exists(_) => (Status::Blocked, "exists", "name another file; nothing was changed"),
        RebuildErrorKind::Io { source, .. } if is_no_room(source) => NO_ROOM,
        RebuildErrorKind::Sqlite { source, .. } if OpenErrorKind::is_no_room(source) => NO_ROOM,
        RebuildErrorKind::Io { .. } => (Status::Other, "io", "nothing was changed"),
        RebuildErrorKind::Sqlite { .. } => (Status::Other, "sqlite", "nothing was changed"),
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", "nothing was changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_upkeep::rebuild::Named;

    #[test]
    fn statuses_follow_the_kind() {
        let gain = RebuildErrorKind::NothingToGain { free_bytes: 1, planned_bytes: 2, file_bytes: 3 };
        for (kind, status) in [
            (RebuildErrorKind::InUse { holders: Named::default() }, 3),
            (RebuildErrorKind::DeletedLog { holders: Named::default() }, 3),
            (RebuildErrorKind::HardLinks { names: 2 }, 3),
            (RebuildErrorKind::PlanChanged, 3),
            (gain, 4),
            (RebuildErrorKind::Damaged, 5),
            (RebuildErrorKind::NetworkFileSystem { file_system: "nfs" }, 5),
            (RebuildErrorKind::NoRoom { needed_bytes: 2, free_bytes: 1 }, 1),
            (RebuildErrorKind::Cancelled, 1),
            (RebuildErrorKind::Open(OpenErrorKind::NeedsRecovery), 3),
            (RebuildErrorKind::Io { doing: "writing", source: io::ErrorKind::FileTooLarge.into() }, 1),
            (RebuildErrorKind::Open(OpenErrorKind::Empty), 5),
        ] {
            let failure = Failure::from(RebuildError { path: "/d\x1b".into(), kind });
            assert_eq!(failure.status.code(), status, "{}", failure.code);
            assert!(!failure.message.contains('\x1b'), "{}", failure.message);
        }
    }
}
