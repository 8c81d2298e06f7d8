//! The name of one life of a store.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest epoch in bytes.
const EPOCH_BYTES_MAX: usize = 64;

/// Names one life of a store: it changes at every start of the process and whenever the rows may have been replaced under it (C4, C36).
/// Revisions of different epochs cannot be compared. 1 to 64 visible ASCII characters without meaning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Epoch(Box<str>);

/// The text is not an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an epoch has 1 to {EPOCH_BYTES_MAX} visible ASCII characters")]
pub struct ParseEpochError;

impl Epoch {
    /// Takes `text` as an epoch.
    ///
    /// # Errors
    /// [`ParseEpochError`] where it is empty, too long or has other characters.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, ParseEpochError> {
        let text = text.into();
        let fits = (1..=EPOCH_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text))
        } else {
            Err(ParseEpochError)
        }
    }

    /// The epoch that 128 random bits name, in hexadecimal digits.
    pub fn from_bits(bits: [u8; 16]) -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(bits)).into())
    }

    /// The epoch as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Epoch {
    type Error = ParseEpochError;
    fn try_from(text: String) -> Result<Self, ParseEpochError> {
        Self::new(text)
    }
}

impl From<Epoch> for String {
    fn from(epoch: Epoch) -> Self {
        epoch.0.into()
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_visible_text_is_an_epoch() {
        assert!(Epoch::new("01JD9Z0W7Q").is_ok());
        assert!(Epoch::new(Epoch::from_bits([0xab; 16]).as_str()).is_ok());
        for bad in ["", " ", "a b", "a\n", "é", &"x".repeat(65)] {
            assert_eq!(Epoch::new(bad), Err(ParseEpochError), "{bad:?}");
        }
    }
}
