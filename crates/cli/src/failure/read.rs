//! Readings that stopped.

use headwater_upkeep::ReadError;

use super::{CANCELLED_HINT, DAMAGED_HINT, Failure, NAME_A_SESSION, WAIT_HINT};
use crate::status::Status;

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let (status, code, hint) = match &error {
            ReadError::Open(error) => return error.into(),
            ReadError::Output(error) => return Self::output(error, Status::Done),
            ReadError::Cancelled => (Status::Other, "cancelled", CANCELLED_HINT),
            ReadError::Damaged(_) => (Status::Damaged, "damaged", DAMAGED_HINT),
            ReadError::Busy => (Status::Blocked, "busy", WAIT_HINT),
            ReadError::NoSuchSession => (Status::Usage, "unknown-session", NAME_A_SESSION),
            ReadError::NoSuchMessage => {
                (Status::Usage, "unknown-message", "`headwater show SESSION` lists the messages of a session")
            }
            ReadError::Sqlite(_) => (Status::Other, "sqlite", "nothing was changed"),
            // Required because the enum may grow in another release of the library.
            _ => (Status::Other, "other", "nothing was changed"),
        };
        Self::new(status, code, error).with_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn statuses_follow_the_kind() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        for (error, status) in [
            (ReadError::Cancelled, 1),
            (ReadError::Busy, 3),
            (ReadError::NoSuchSession, 2),
            (ReadError::NoSuchMessage, 2),
            (ReadError::Output(broken()), 0),
            (ReadError::Output(full()), 1),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.status.code(), status, "{}", failure.code);
        }
        assert!(Failure::from(ReadError::Output(broken())).is_closed_pipe);
        assert!(!Failure::from(ReadError::Output(full())).is_closed_pipe);
    }
}
