//! Headwater's own file of receipts.

use headwater_upkeep::state::{StateError, StateErrorKind};

use super::Failure;
use crate::status::Status;

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        let (status, code, hint) = explain(&error.kind);
        Self::new(status, code, error).with_hint(hint)
    }
}

pub(super) fn explain(kind: &StateErrorKind) -> (Status, &'static str, &'static str) {
    match kind {
        StateErrorKind::NotAStateFile => {
            (Status::Damaged, "not-a-state-file", "name another folder with --state, or move that file away")
        }
        StateErrorKind::Newer { .. } => {
            (Status::Damaged, "newer-state-file", "use the newer version of headwater")
        }
        StateErrorKind::Busy => (Status::Blocked, "other-prune", "wait until the other prune is done"),
        StateErrorKind::NoRoom => {
            (Status::Other, "no-room", "make room in the folder of the state file; nothing was changed")
        }
        StateErrorKind::PermissionDenied => (
            Status::Other,
            "state-denied",
            "name a folder that you may write to with --state; nothing was changed",
        ),
        StateErrorKind::Damaged => (
            Status::Damaged,
            "damaged-state-file",
            "keep a copy of that file, then name another folder with --state",
        ),
        StateErrorKind::Io(_) | StateErrorKind::Sqlite(_) => (Status::Other, "state", "nothing was changed"),
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", "nothing was changed"),
    }
}
