//! The counter of a session in the conversation store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many changes a session has seen: 0..=2^63-1, raised by the database itself and never lowered (C2). Crosses a process as a decimal
/// string, because a number would lose digits in JavaScript (C4).
///
/// Not to be confused with [`ContentRevision`](crate::ContentRevision), the hash of one message's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Revision(i64);

/// The value is not a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a revision is a decimal number from 0 to 2^63-1 without sign or leading zeros")]
pub struct ParseRevisionError;

impl Revision {
    /// Before the first change. A session without a stored revision has it too (C2).
    pub const ZERO: Self = Self(0);

    /// Takes a stored counter.
    ///
    /// # Errors
    /// [`ParseRevisionError`] where it is negative.
    pub const fn new(counter: i64) -> Result<Self, ParseRevisionError> {
        if counter < 0 { Err(ParseRevisionError) } else { Ok(Self(counter)) }
    }

    /// The counter as both databases store it.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The revision after `steps` changes; none beyond 2^63-1.
    #[must_use]
    pub const fn after(self, steps: u32) -> Option<Self> {
        match self.0.checked_add(steps as i64) {
            Some(counter) => Some(Self(counter)),
            None => None,
        }
    }
}

impl FromStr for Revision {
    type Err = ParseRevisionError;

    fn from_str(text: &str) -> Result<Self, ParseRevisionError> {
        let digits = text.as_bytes();
        let canonical = digits == b"0" || digits.first().is_some_and(|first| (b'1'..=b'9').contains(first));
        if !canonical || !digits.iter().all(u8::is_ascii_digit) {
            return Err(ParseRevisionError);
        }
        text.parse().map(Self).map_err(|_| ParseRevisionError)
    }
}

impl TryFrom<String> for Revision {
    type Error = ParseRevisionError;
    fn try_from(text: String) -> Result<Self, ParseRevisionError> {
        text.parse()
    }
}

impl From<Revision> for String {
    fn from(revision: Revision) -> Self {
        revision.to_string()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_round_trips(counter in 0..=i64::MAX) {
            let revision = Revision::new(counter).unwrap();
            let json = serde_json::to_string(&revision).unwrap();
            prop_assert_eq!(&json, &format!("\"{counter}\""));
            prop_assert_eq!(serde_json::from_str::<Revision>(&json).unwrap(), revision);
        }
    }

    #[test]
    fn beyond_what_javascript_counts_every_digit_stays() {
        let revision: Revision = "9007199254740993".parse().unwrap();
        assert_eq!(revision.to_string(), "9007199254740993");
        assert!("10".parse::<Revision>().unwrap() > "9".parse::<Revision>().unwrap());
    }

    #[test]
    fn other_spellings_are_refused() {
        for bad in ["", "00", "01", "+1", "-1", "-0", " 1", "1 ", "1.0", "1e3", "9223372036854775808", "١"] {
            assert_eq!(bad.parse::<Revision>(), Err(ParseRevisionError), "{bad:?}");
        }
        assert!(serde_json::from_str::<Revision>("1").is_err());
    }

    #[test]
    fn counting_ends_instead_of_wrapping() {
        assert_eq!(Revision::new(i64::MAX).unwrap().after(1), None);
        assert_eq!(Revision::new(-1), Err(ParseRevisionError));
        assert_eq!(Revision::ZERO.after(2).map(Revision::get), Some(2));
    }
}
