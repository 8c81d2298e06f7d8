//! Databases that cannot be located.

use headwater_upkeep::locate::{LocateError, TargetError};

use super::Failure;
use crate::status::Status;

impl From<LocateError> for Failure {
    fn from(error: LocateError) -> Self {
        let code = match error.0 {
            TargetError::InMemory => "in-memory",
            TargetError::NoHome => "no-home",
            // Required because the enum may grow in another release of the library.
            _ => "not-located",
        };
        Self::new(Status::Other, code, error).with_hint("name the database with --db")
    }
}
