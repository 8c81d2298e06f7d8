//! Stored times as people read them.

use headwater_model::{DAY_MS, UnixMillis};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The local date and minute, or the stored number where it is no plausible time (zero, negative, beyond year 9999).
pub(crate) fn local(time: UnixMillis) -> String {
    in_zone(time, TimeZone::system())
}

fn in_zone(time: UnixMillis, zone: TimeZone) -> String {
    match Timestamp::from_millisecond(time.get()) {
        Ok(instant) if time.get() > 0 => {
            instant.to_zoned_datetime(zone).strftime("%Y-%m-%d %H:%M").to_string()
        }
        _ => format!("({})", time.get()),
    }
}

/// How long before `now` it was, in the largest whole unit: `5 min`, `3 h`, `12 d`. Future times have no age.
pub(crate) fn age(time: UnixMillis, now: UnixMillis) -> String {
    let ms = now.since(time);
    match ms {
        _ if time.get() <= 0 || ms < 0 => "?".to_owned(),
        0..60_000 => "now".to_owned(),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        3_600_000..DAY_MS => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / DAY_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_times_are_shown_as_stored() {
        let text = |ms| in_zone(UnixMillis::new(ms), TimeZone::UTC);
        assert_eq!(text(1_790_000_000_000), "2026-09-21 14:13");
        for ms in [0, -5, i64::MAX] {
            assert_eq!(text(ms), format!("({ms})"));
        }
    }

    #[test]
    fn ages_use_the_largest_unit() {
        let now = UnixMillis::new(100 * DAY_MS);
        for (ms, text) in [(59_999, "now"), (61_000, "1 min"), (7_200_000, "2 h"), (3 * DAY_MS, "3 d")] {
            assert_eq!(age(now.minus_ms(ms), now), text);
        }
        assert_eq!(age(now.minus_ms(-1), now), "?");
        assert_eq!(age(UnixMillis::new(0), now), "?");
    }
}
