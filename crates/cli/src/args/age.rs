//! Ages on the command line, as a retention policy writes them: `30d`, `2 weeks`, `6mo`.

use headwater_model::UnixMillis;
use headwater_upkeep::retention::Age;

/// The text is no age that makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AgeError {
    /// Not a duration with a unit, or one that would select everything or the future.
    #[error("an age is a number above zero and a unit, such as 30d, 2w, 6mo or 1y")]
    NotAnAge,
    /// Nothing is older than that.
    #[error("the age reaches back before 1970")]
    BeforeEpoch,
}

/// Reads an age.
pub(crate) fn parse(text: &str) -> Result<Age, AgeError> {
    text.parse().map_err(|_| AgeError::NotAnAge)
}

/// The instant that lies `age` before `now`.
pub(crate) fn before(age: Age, now: UnixMillis) -> Result<UnixMillis, AgeError> {
    age.before(now).ok_or(AgeError::BeforeEpoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_model::DAY_MS;

    const NOW: UnixMillis = UnixMillis::new(1_790_000_000_000);

    #[test]
    fn ages_reach_back_by_their_length() {
        for (text, days) in [("30d", 30), ("2 weeks", 14), ("24h", 1), ("1mo", 31), ("1y", 365)] {
            assert_eq!(before(parse(text).unwrap(), NOW), Ok(NOW.minus_ms(days * DAY_MS)), "{text}");
        }
    }

    #[test]
    fn what_is_no_age_is_refused() {
        for text in
            ["", "30", "soon", "d30", "1e9d", "99999999999999999999d", "9999999y", "0d", "-3d", "3 days ago"]
        {
            assert_eq!(parse(text).map(|_| ()), Err(AgeError::NotAnAge), "{text}");
        }
        for text in ["90y", "9000y"] {
            assert_eq!(before(parse(text).unwrap(), NOW), Err(AgeError::BeforeEpoch), "{text}");
        }
    }
}
