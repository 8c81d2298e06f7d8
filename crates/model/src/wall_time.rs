//! Points in time as the conversation store keeps them: text, of several spellings.

use std::fmt;
use std::str::FromStr;

use jiff::civil;
use serde::{Deserialize, Serialize};

/// Nanoseconds of one microsecond, the resolution of order keys (C34).
const MICRO: i32 = 1_000;

/// An instant of the years 0 to 9999 in UTC, to the nanosecond. Written as RFC 3339 with `Z` and without trailing zeros of the fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WallTime(civil::DateTime);

/// The text names no instant that the conversation store can keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time is written as 2026-09-16T12:00:00.123456Z, with a year from 0 to 9999")]
pub struct ParseWallTimeError;

impl WallTime {
    /// What is shown for a stored time that names no instant: earlier than any real one, as such a row sorts first (C34).
    pub const UNKNOWN: Self = Self(civil::DateTime::constant(1, 1, 1, 0, 0, 0, 0));

    /// The instant `micros` microseconds after 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// [`ParseWallTimeError`] outside the years 0 to 9999.
    pub fn from_unix_micros(micros: i64) -> Result<Self, ParseWallTimeError> {
        let timestamp = jiff::Timestamp::from_microsecond(micros).map_err(|_| ParseWallTimeError)?;
        Self::try_from_civil(jiff::tz::Offset::UTC.to_datetime(timestamp))
    }

    fn try_from_civil(time: civil::DateTime) -> Result<Self, ParseWallTimeError> {
        if time.year() < 0 { Err(ParseWallTimeError) } else { Ok(Self(time)) }
    }

    /// The instant with its fraction cut to microseconds: what both databases can keep (C34). Never rounded.
    #[must_use]
    pub fn cut_to_micros(self) -> Self {
        let nanos = self.0.subsec_nanosecond();
        let cut = self.0.with().subsec_nanosecond(nanos - nanos % MICRO).build();
        Self(cut.unwrap_or(self.0))
    }

    /// The instant one microsecond later; none beyond the year 9999.
    #[must_use]
    pub fn next_micro(self) -> Option<Self> {
        self.0.checked_add(jiff::Span::new().microseconds(1)).ok().map(Self)
    }

    /// The key that orders records: `YYYY-MM-DD HH:MM:SS.ffffff` in UTC, the fraction cut to six digits (C34).
    pub fn order_time(self) -> OrderTime {
        OrderTime(format!("{}.{:06}", self.to_the_second(' '), self.0.subsec_nanosecond() / MICRO).into())
    }

    /// The text in which SQLite files hold the instant: `YYYY-MM-DD HH:MM:SS[.f…]+00:00`, trailing zeros of the fraction dropped.
    pub fn stored_text(self) -> String {
        format!("{}{}+00:00", self.to_the_second(' '), self.fraction())
    }

    fn to_the_second(self, between: char) -> String {
        let time = self.0;
        format!(
            "{:04}-{:02}-{:02}{between}{:02}:{:02}:{:02}",
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        )
    }

    fn fraction(self) -> String {
        match self.0.subsec_nanosecond() {
            0 => String::new(),
            nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
        }
    }

    /// Reads what SQLite files hold: a date, a space or `T`, a time of day to the second, up to nine digits of fraction (more are cut), and
    /// `Z`, an offset as `+02:00`, or nothing for UTC.
    ///
    /// # Errors
    /// [`ParseWallTimeError`] for every other text.
    pub fn parse_stored(text: &str) -> Result<Self, ParseWallTimeError> {
        Fields { rest: text.as_bytes() }.read().ok_or(ParseWallTimeError)
    }
}

impl FromStr for WallTime {
    type Err = ParseWallTimeError;

    /// Reads RFC 3339 and the stored spellings alike.
    fn from_str(text: &str) -> Result<Self, ParseWallTimeError> {
        Self::parse_stored(text)
    }
}

impl TryFrom<String> for WallTime {
    type Error = ParseWallTimeError;
    fn try_from(text: String) -> Result<Self, ParseWallTimeError> {
        Self::parse_stored(&text)
    }
}

impl From<WallTime> for String {
    fn from(time: WallTime) -> Self {
        time.to_string()
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}Z", self.to_the_second('T'), self.fraction())
    }
}

/// The rest of a stored time that is still to be read.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    fn read(mut self) -> Option<WallTime> {
        let year = self.number(4)?;
        self.one_of(b"-")?;
        let month = self.number(2)?;
        self.one_of(b"-")?;
        let day = self.number(2)?;
        self.one_of(b" Tt")?;
        let hour = self.number(2)?;
        self.one_of(b":")?;
        let minute = self.number(2)?;
        self.one_of(b":")?;
        let second = self.number(2)?;
        let nanos = self.fraction()?;
        let ahead = self.offset_minutes()?;
        let small = |value: i32| i8::try_from(value).ok();
        let time = civil::DateTime::new(
            i16::try_from(year).ok()?,
            small(month)?,
            small(day)?,
            small(hour)?,
            small(minute)?,
            small(second)?,
            nanos,
        );
        let utc = time.ok()?.checked_sub(jiff::Span::new().minutes(ahead)).ok()?;
        WallTime::try_from_civil(utc).ok()
    }

    fn one_of(&mut self, allowed: &[u8]) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        allowed.contains(first).then_some(*first)
    }

    fn number(&mut self, digits: usize) -> Option<i32> {
        let (number, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        number
            .iter()
            .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i32::from(digit - b'0')))
    }

    fn fraction(&mut self) -> Option<i32> {
        if self.rest.first() != Some(&b'.') {
            return Some(0);
        }
        let digits = self.rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.rest.split_at(digits + 1);
        self.rest = rest;
        let padded = fraction[1..].iter().copied().chain(std::iter::repeat(b'0')).take(9);
        (digits > 0).then(|| padded.fold(0, |value, digit| value * 10 + i32::from(digit - b'0')))
    }

    fn offset_minutes(&mut self) -> Option<i32> {
        match self.rest {
            [] | [b'Z' | b'z'] => return Some(0),
            _ => {}
        }
        let sign = if self.one_of(b"+-")? == b'-' { -1 } else { 1 };
        let hours = self.number(2)?;
        self.one_of(b":")?;
        let minutes = self.number(2)?;
        (self.rest.is_empty() && hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes))
    }
}

/// The first part of an [`OrderKey`](crate::conversation::OrderKey): the time of a record as text that is compared byte by byte, alike in Rust, SQLite,
/// PostgreSQL and a client (C34). Kept as the database computes it: `YYYY-MM-DD HH:MM:SS.ffffff` wherever the stored text is a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderTime(Box<str>);

impl OrderTime {
    /// Takes the key as the database computed it.
    pub fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(text: &str) -> WallTime {
        text.parse().unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn every_stored_spelling_of_an_instant_is_that_instant() {
        let cases = [
            ("2026-09-16 12:00:00.123456789+00:00", "2026-09-16T12:00:00.123456789Z"),
            ("2026-09-16 12:00:00.5+00:00", "2026-09-16T12:00:00.5Z"),
            ("2026-09-16 12:00:00+00:00", "2026-09-16T12:00:00Z"),
            ("2026-09-16 12:00:00", "2026-09-16T12:00:00Z"),
            ("2026-09-16T12:00:00Z", "2026-09-16T12:00:00Z"),
            ("2026-09-16T14:30:00.25+02:30", "2026-09-16T12:00:00.25Z"),
            ("2026-09-16T23:30:00-01:00", "2026-09-17T00:30:00Z"),
            ("0000-01-01 00:00:00", "0000-01-01T00:00:00Z"),
            ("2026-09-16 12:00:00.1234567891234", "2026-09-16T12:00:00.123456789Z"),
        ];
        for (stored, wanted) in cases {
            assert_eq!(time(stored).to_string(), wanted, "{stored}");
        }
    }

    #[test]
    fn what_names_no_instant_is_refused() {
        for bad in [
            "",
            "now",
            "1790000000",
            "2026-09-16",
            "2026-09-16 12:00",
            "2026-13-01 00:00:00",
            "2026-02-30 00:00:00",
            "2026-09-16 24:00:00",
            "2026-09-16 12:00:00.",
            "2026-09-16 12:00:00.x",
            "2026-09-16 12:00:00 +0000 UTC",
            "2026-09-16 12:00:00+15:00",
            "2026-09-16 12:00:00+0:00",
            "2026-09-16 12:00:00Z ",
            "0000-01-01 00:00:00+01:00",
            "٢٠٢٦-09-16 12:00:00",
        ] {
            assert_eq!(WallTime::parse_stored(bad), Err(ParseWallTimeError), "{bad:?}");
        }
    }

    #[test]
    fn order_keys_cut_and_never_round() {
        assert_eq!(time("2026-09-16T12:00:00.9999999Z").order_time().as_str(), "2026-09-16 12:00:00.999999");
        assert_eq!(time("2026-09-16T12:00:00Z").order_time().as_str(), "2026-09-16 12:00:00.000000");
        assert_eq!(
            time("2026-09-16T12:00:00.1234567Z").cut_to_micros().to_string(),
            "2026-09-16T12:00:00.123456Z"
        );
    }

    #[test]
    fn the_unknown_time_is_earlier_than_real_ones() {
        assert!(WallTime::UNKNOWN < WallTime::from_unix_micros(0).unwrap());
        assert_eq!(WallTime::UNKNOWN.to_string(), "0001-01-01T00:00:00Z");
    }

    proptest! {
        #[test]
        fn text_round_trips_and_keys_order_like_times(a in -62_000_000_000_000_000_i64..253_000_000_000_000_000, b in -62_000_000_000_000_000_i64..253_000_000_000_000_000) {
            let [a, b] = [a, b].map(|micros| WallTime::from_unix_micros(micros).unwrap());
            prop_assert_eq!(time(&a.to_string()), a);
            prop_assert_eq!(time(&a.stored_text()), a);
            prop_assert_eq!(a.order_time().cmp(&b.order_time()), a.cmp(&b));
            prop_assert!(a.next_micro().unwrap() > a);
        }

        #[test]
        fn what_is_read_is_read_again(text in "[0-2][0-9]{3}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-5][0-9][0-9TtZz:. +-]{0,12}") {
            if let Ok(time) = WallTime::parse_stored(&text) {
                prop_assert_eq!(WallTime::parse_stored(&time.to_string()), Ok(time));
            }
        }
    }
}
