//! Undos that fail.

use headwater_upkeep::undo::{UndoError, UndoErrorKind};

use super::{CANCELLED_HINT, Failure, archive, prune, state};
use crate::status::Status;

impl From<UndoError> for Failure {
    fn from(error: UndoError) -> Self {
        let (status, code, hint) = match &error.kind {
            UndoErrorKind::Archive(error) => archive::explain(&error.kind),
            UndoErrorKind::State(error) => state::explain(&error.kind),
            UndoErrorKind::Lock(error) => prune::lock(error),
            UndoErrorKind::Cancelled => (Status::Other, "cancelled", CANCELLED_HINT),
            // Required because the enum may grow in another release of the library.
            _ => (Status::Other, "other", "run the same command again: it restores nothing twice"),
        };
        Self::new(status, code, error).with_hint(hint)
    }
}
