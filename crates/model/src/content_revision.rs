//! The hash that names one state of a message's content.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// SHA-256 over the canonical JSON of a message's content (P3). Written as 64 lower-case hex digits.
///
/// Not to be confused with a session's *revision*, the counter of the conversation store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentRevision([u8; 32]);

/// The text is not 64 lower-case hex digits (P2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a content revision is 64 lower-case hexadecimal digits")]
pub struct ParseContentRevisionError;

impl ContentRevision {
    /// Takes the 32 bytes of a SHA-256.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for ContentRevision {
    type Err = ParseContentRevisionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(ParseContentRevisionError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = [nibble(pair[0])?, nibble(pair[1])?];
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, ParseContentRevisionError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(ParseContentRevisionError),
    }
}

impl TryFrom<String> for ContentRevision {
    type Error = ParseContentRevisionError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ContentRevision> for String {
    fn from(revision: ContentRevision) -> Self {
        revision.to_string()
    }
}

impl fmt::Display for ContentRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_round_trips(bytes: [u8; 32]) {
            let revision = ContentRevision::from_bytes(bytes);
            prop_assert_eq!(revision.to_string().parse(), Ok(revision));
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        let good = "0".repeat(64);
        for bad in [&good[1..], &format!("{good}0"), &good.replace('0', "A"), &format!("+{}", &good[1..])] {
            assert_eq!(bad.parse::<ContentRevision>(), Err(ParseContentRevisionError), "{bad}");
        }
    }
}
