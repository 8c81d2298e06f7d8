//! Sample databases that cannot be made.

use headwater_upkeep::demo::{DemoError, DemoErrorKind};

use super::Failure;
use crate::status::Status;

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        let (status, code, hint) = match &error.kind {
            DemoErrorKind::Exists => {
                (Status::Blocked, "exists", "name a folder without an OpenCode database; nothing was changed")
            }
            DemoErrorKind::Io(_) => (Status::Other, "io", "name a folder that you may write to"),
            DemoErrorKind::Sqlite(_) => {
                (Status::Other, "sqlite", "name a folder on a disk with some mebibytes of room")
            }
            // Required because the enum may grow in another release of the library.
            _ => (Status::Other, "other", "name another folder"),
        };
        Self::new(status, code, error).with_hint(hint)
    }
}
