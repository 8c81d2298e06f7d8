//! Why a text is not JSON.

/// Where and why scanning stopped. Holds no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    /// Offset in bytes of the first byte that cannot be accepted; the length of the text where it ends too early.
    pub offset: usize,
    /// The reason.
    pub kind: JsonErrorKind,
}

/// The reason of a [`JsonError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The text ends inside a value. For a prefix this means that more is needed.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// A byte that the grammar does not allow here.
    #[error("unexpected byte")]
    UnexpectedByte,
    /// A control character (below 0x20) inside a string.
    #[error("control character in a string")]
    ControlCharacter,
    /// An escape sequence that the grammar does not know.
    #[error("invalid escape sequence")]
    BadEscape,
    /// Something that begins like a number and is none.
    #[error("invalid number")]
    BadNumber,
    /// A string whose bytes are not UTF-8.
    #[error("invalid utf-8")]
    InvalidUtf8,
    /// More than [`crate::limits::JSON_DEPTH_MAX`] arrays and objects inside each other.
    #[error("nested too deeply")]
    TooDeep,
    /// Something other than white space after the document.
    #[error("trailing data")]
    TrailingData,
    /// A value of another type than the caller can use.
    #[error("value of another type than expected")]
    UnexpectedType,
}

impl JsonError {
    /// An error of `kind` at `offset`.
    pub const fn new(offset: usize, kind: JsonErrorKind) -> Self {
        Self { offset, kind }
    }

    /// Whether a longer text could have been accepted.
    pub const fn is_end(self) -> bool {
        matches!(self.kind, JsonErrorKind::UnexpectedEnd)
    }
}
