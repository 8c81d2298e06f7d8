//! Ages on the command line: `30d`, `2 weeks`, `6mo`.

use std::str::FromStr;

use headwater_model::UnixMillis;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// How long ago something was last used, at least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age(Span);

/// The text is no age that makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AgeError {
    /// Not a duration with a unit.
    #[error("an age is a number and a unit, such as 30d, 2w, 6mo or 1y")]
    Unreadable,
    /// Zero or negative, which would select everything or the future.
    #[error("an age is longer than zero")]
    NotPositive,
    /// Nothing is older than that.
    #[error("the age reaches back before 1970")]
    BeforeEpoch,
}

impl FromStr for Age {
    type Err = AgeError;

    fn from_str(text: &str) -> Result<Self, AgeError> {
        let span: Span = text.trim().parse().map_err(|_| AgeError::Unreadable)?;
        if !span.is_positive() {
            return Err(AgeError::NotPositive);
        }
        Ok(Self(span))
    }
}

impl Age {
    /// The instant that lies this age before `now`. Days are 24 hours, months and years those of the calendar in UTC.
    pub(crate) fn before(self, now: UnixMillis) -> Result<UnixMillis, AgeError> {
        let instant = Timestamp::from_millisecond(now.get()).map_err(|_| AgeError::BeforeEpoch)?;
        let before = instant.to_zoned_datetime(TimeZone::UTC).checked_sub(self.0);
        let ms = before.map_err(|_| AgeError::BeforeEpoch)?.timestamp().as_millisecond();
        if ms < 0 { Err(AgeError::BeforeEpoch) } else { Ok(UnixMillis::new(ms)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_model::DAY_MS;

    const NOW: UnixMillis = UnixMillis::new(1_790_000_000_000);

    #[test]
    fn ages_reach_back_by_their_length() {
        for (text, days) in [("30d", 30), ("2 weeks", 14), ("24h", 1), ("1mo", 31), ("1y", 365)] {
            let age: Age = text.parse().unwrap();
            assert_eq!(age.before(NOW), Ok(NOW.minus_ms(days * DAY_MS)), "{text}");
        }
    }

    #[test]
    fn what_is_no_age_is_refused() {
        let parse = |text: &str| text.parse::<Age>().map(|_| ());
        for text in ["", "30", "soon", "d30", "1e9d", "99999999999999999999d", "9999999y"] {
            assert_eq!(parse(text), Err(AgeError::Unreadable), "{text}");
        }
        for text in ["0d", "-3d", "3 days ago"] {
            assert_eq!(parse(text), Err(AgeError::NotPositive), "{text}");
        }
        for text in ["90y", "9000y"] {
            assert_eq!(text.parse::<Age>().unwrap().before(NOW), Err(AgeError::BeforeEpoch), "{text}");
        }
    }
}
