//! Stable codes that cross a process boundary.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a request for preview, prune or history is answered with `blocked` (P1). Written in snake case; the set is closed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum BlockedReason {
    /// The operation is not offered: no plugin, no storage, or nothing with this id that the caller may see.
    #[error("not available")]
    Unavailable,
    /// The database or session is in use in a way that forbids the operation; the same request may succeed later.
    #[error("in use, try again later")]
    MaintenanceRequired,
    /// The stored content differs from the previewed revision; preview again.
    #[error("changed since the preview")]
    Conflict,
    /// The selection holds something that is never removed (P4).
    #[error("holds something that is never removed")]
    NotDeletable,
    /// The database has a schema, a trigger or an owner that this version does not write to.
    #[error("storage of a kind that is not written to")]
    UnsupportedStorage,
}

/// Whether and when repeating a blocked request can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryAdvice {
    /// The same request is refused again.
    Never,
    /// The same request may succeed when the work in progress is over.
    Later,
    /// A fresh preview, then a request built from it.
    AfterPreview,
}

impl BlockedReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::Unavailable,
        Self::MaintenanceRequired,
        Self::Conflict,
        Self::NotDeletable,
        Self::UnsupportedStorage,
    ];

    /// The code as it is written in answers.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::MaintenanceRequired => "maintenance_required",
            Self::Conflict => "conflict",
            Self::NotDeletable => "not_deletable",
            Self::UnsupportedStorage => "unsupported_storage",
        }
    }

    /// What the caller can do about it.
    pub const fn retry_advice(self) -> RetryAdvice {
        match self {
            Self::Unavailable | Self::NotDeletable | Self::UnsupportedStorage => RetryAdvice::Never,
            Self::MaintenanceRequired => RetryAdvice::Later,
            Self::Conflict => RetryAdvice::AfterPreview,
        }
    }
}

/// A text that is none of the codes of [`BlockedReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown blocked reason")]
pub struct UnknownBlockedReason;

impl FromStr for BlockedReason {
    type Err = UnknownBlockedReason;

    fn from_str(code: &str) -> Result<Self, UnknownBlockedReason> {
        Self::ALL.into_iter().find(|reason| reason.code() == code).ok_or(UnknownBlockedReason)
    }
}

/// A code as it is written, for messages that print the code instead of the sentence.
#[derive(Clone, Copy, Debug)]
pub struct Code(pub BlockedReason);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_json_agree_and_read_back() {
        for reason in BlockedReason::ALL {
            assert_eq!(serde_json::to_string(&reason).unwrap(), format!("\"{}\"", reason.code()));
            assert_eq!(reason.code().parse(), Ok(reason));
        }
        assert_eq!("Conflict".parse::<BlockedReason>(), Err(UnknownBlockedReason));
    }

    #[test]
    fn only_a_conflict_asks_for_a_new_preview() {
        use RetryAdvice::{AfterPreview, Later, Never};
        let advised = BlockedReason::ALL.map(BlockedReason::retry_advice);
        assert_eq!(advised, [Never, Later, AfterPreview, Never, Never]);
    }
}
