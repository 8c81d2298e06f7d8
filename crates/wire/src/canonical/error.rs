//! Why a text has no canonical form.

use crate::json::{JsonError, JsonErrorKind};

/// Where and why a document has no canonical form. Holds no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct CanonicalError {
    /// Offset in bytes of what cannot be accepted.
    pub offset: usize,
    /// The reason.
    pub kind: CanonicalErrorKind,
}

/// The reason of a [`CanonicalError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalErrorKind {
    /// Not JSON, not UTF-8, or nested too deeply.
    #[error(transparent)]
    Json(JsonErrorKind),
    /// Half of a surrogate pair.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// A key that its object already has, after decoding.
    #[error("repeated key")]
    RepeatedKey,
    /// A number whose value a binary64 does not hold.
    #[error("number that loses its value")]
    LossyNumber,
    /// A stored part that is not an object (1.x).
    #[error("part that is not an object")]
    NotAnObject,
    /// A stored part with an `id` other than its row's (1.x).
    #[error("part with another id than its row")]
    OtherId,
}

impl CanonicalErrorKind {
    /// The short name used in `schemas/vectors/canonical.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json(JsonErrorKind::TooDeep) => "too-deep",
            Self::Json(JsonErrorKind::InvalidUtf8) => "invalid-utf8",
            Self::Json(_) => "syntax",
            Self::LoneSurrogate => "lone-surrogate",
            Self::RepeatedKey => "repeated-key",
            Self::LossyNumber => "lossy-number",
            Self::NotAnObject => "not-an-object",
            Self::OtherId => "other-id",
        }
    }
}

impl CanonicalError {
    pub(super) const fn new(offset: usize, kind: CanonicalErrorKind) -> Self {
        Self { offset, kind }
    }
}

impl From<JsonError> for CanonicalError {
    fn from(error: JsonError) -> Self {
        Self { offset: error.offset, kind: CanonicalErrorKind::Json(error.kind) }
    }
}
