//! Retention policies that cannot be used or carried out.

use headwater_upkeep::OpenErrorKind;
use headwater_upkeep::retention::{PolicyError, PolicyErrorKind, RetentionError};

use super::{DAMAGED_HINT, Failure};
use crate::status::Status;

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Self {
        let status = match error.kind {
            PolicyErrorKind::Io(_) => Status::Other,
            PolicyErrorKind::Syntax(_)
            | PolicyErrorKind::NotAFile
            | PolicyErrorKind::TooLong
            | PolicyErrorKind::Age
            | PolicyErrorKind::Size
            | PolicyErrorKind::Class(_)
            | PolicyErrorKind::EverySession
            // Required because the enum may grow in another release of the library.
            | _ => Status::Usage,
        };
        Self::new(status, "policy", error).with_hint(POLICY_HINT)
    }
}

const POLICY_HINT: &str = "`headwater retention --help` shows a policy; nothing was changed";

impl From<RetentionError> for Failure {
    fn from(error: RetentionError) -> Self {
        match error {
            RetentionError::Plan(error) => error.into(),
            RetentionError::Prune(error) => error.into(),
            RetentionError::State(error) => error.into(),
            RetentionError::Policy(_) => Self::new(Status::Usage, "policy", error).with_hint(POLICY_HINT),
            RetentionError::Sqlite(ref found) if OpenErrorKind::is_damage(found) => {
                Self::new(Status::Damaged, "damaged", error).with_hint(DAMAGED_HINT)
            }
            RetentionError::Sqlite(_) => {
                Self::new(Status::Other, "sqlite", error).with_hint("nothing was changed")
            }
            // Required because the enum may grow in another release of the library.
            _ => Self::new(Status::Other, "other", error).with_hint("nothing was changed"),
        }
    }
}
