//! Byte counts and other numbers as people read them.

use bytesize::ByteSize;
use headwater_model::ByteCount;

/// The count in binary units: `1.5 GiB`, `17 B`.
pub(crate) fn size(bytes: ByteCount) -> String {
    ByteSize::b(bytes.get()).display().iec().to_string()
}

/// The share of `part` in `whole` in per cent with one decimal, or nothing where `whole` is zero.
pub(crate) fn share(part: ByteCount, whole: ByteCount) -> String {
    if whole.is_zero() {
        return String::new();
    }
    let tenths = u128::from(part.get()) * 1000 / u128::from(whole.get());
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The number with a thin separator between thousands: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The number and what is counted, in the form that goes with it: `1 session`, `2 sessions`.
pub(crate) fn counted(number: u64, [one, many]: [&str; 2]) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_binary_units() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")] {
            assert_eq!(size(ByteCount::new(bytes)), text);
        }
    }

    #[test]
    fn shares_do_not_overflow_and_have_no_share_of_nothing() {
        let all = ByteCount::new(u64::MAX);
        assert_eq!(share(all, all), "100.0 %");
        assert_eq!(share(ByteCount::new(1), ByteCount::new(3)), "33.3 %");
        assert_eq!(share(ByteCount::ZERO, ByteCount::ZERO), "");
    }

    #[test]
    fn one_is_no_plural() {
        for (number, text) in [(0, "0 locks"), (1, "1 lock"), (2000, "2,000 locks")] {
            assert_eq!(counted(number, ["lock", "locks"]), text);
        }
    }

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
    }
}
