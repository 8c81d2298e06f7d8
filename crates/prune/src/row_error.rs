//! Why a row's JSON cannot be used.

use headwater_wire::json::{JsonError, JsonErrorKind};

/// Where and why the JSON of a row cannot be read for an edit. Holds no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct RowError {
    /// Offset in bytes of what cannot be used.
    pub offset: usize,
    /// The reason.
    pub kind: RowErrorKind,
}

/// The reason of a [`RowError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RowErrorKind {
    /// Not JSON, not UTF-8, or nested too deeply.
    #[error(transparent)]
    Json(JsonErrorKind),
    /// An object that decides something has two members of the same name: which of them counts depends on the reader.
    #[error("repeated key")]
    RepeatedKey,
    /// A key with half of a surrogate pair.
    #[error("lone surrogate in a key")]
    LoneSurrogate,
    /// A 2.x assistant row without a `content` array.
    #[error("no content array")]
    NoContent,
    /// An index beyond the last item.
    #[error("no item with index {0}")]
    NoSuchItem(u32),
    /// An item that is never removed (P4): neither a finished tool nor reasoning.
    #[error("item {0} is not one that may be removed")]
    NotRemovable(u32),
}

impl RowError {
    pub(crate) const fn new(offset: usize, kind: RowErrorKind) -> Self {
        Self { offset, kind }
    }
}

impl From<JsonError> for RowError {
    fn from(error: JsonError) -> Self {
        Self { offset: error.offset, kind: RowErrorKind::Json(error.kind) }
    }
}
