//! Numbers as ECMAScript prints them.

use super::{CanonicalError, CanonicalErrorKind};

/// Digits that every binary64 integer of that length holds exactly (10^15 < 2^53).
const SAFE_DIGITS: usize = 15;

/// Most digits of an integer whose value is looked at: 10^38 fits 128 bits.
const INTEGER_DIGITS_MAX: usize = 38;

/// Writes the number spelled `text`, found at `offset`. `integer` says that it has neither fraction nor exponent.
pub(super) fn write(
    out: &mut Vec<u8>,
    text: &str,
    integer: bool,
    offset: usize,
) -> Result<(), CanonicalError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if integer && digits.len() <= SAFE_DIGITS {
        // Only a negative zero is printed otherwise than it is spelled.
        out.extend_from_slice(if digits == "0" { digits.as_bytes() } else { text.as_bytes() });
        return Ok(());
    }
    let lossy = CanonicalError::new(offset, CanonicalErrorKind::LossyNumber);
    let value: f64 = text.parse().map_err(|_| lossy)?;
    if !value.is_finite() || (value == 0.0 && !is_zero(digits)) {
        return Err(lossy);
    }
    let mut buffer = ryu_js::Buffer::new();
    let printed = buffer.format_finite(value);
    if integer && printed != text && !is_exact(digits, value) {
        return Err(lossy);
    }
    out.extend_from_slice(printed.as_bytes());
    Ok(())
}

/// Whether the magnitude of `value`, the nearest binary64, is the integer `digits` itself.
fn is_exact(digits: &str, value: f64) -> bool {
    if digits.len() > INTEGER_DIGITS_MAX {
        return false;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an integer below 1e38 rounded to a binary64 is a non-negative integer below 2^127"
    )]
    let held = value.abs() as u128;
    digits.parse() == Ok(held)
}

/// Whether the digits before the exponent are all zero.
fn is_zero(digits: &str) -> bool {
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<String> {
        let mut out = Vec::new();
        let integer = !text.contains(['.', 'e', 'E']);
        write(&mut out, text, integer, 7).ok().map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn numbers_are_printed_as_ecmascript_does() {
        let cases = [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e5", "0"),
            ("-7", "-7"),
            ("0.10", "0.1"),
            ("1e-7", "1e-7"),
            ("0.000001", "0.000001"),
            ("1E21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("999999999999999", "999999999999999"),
            ("9007199254740992", "9007199254740992"),
            ("9007199254740994", "9007199254740994"),
            ("-9007199254740992", "-9007199254740992"),
            ("1000000000000000000000", "1e+21"),
            ("12345678901234567168", "12345678901234567000"),
            ("12345678901234567000", "12345678901234567000"),
            ("9007199254740993.0", "9007199254740992"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("333333333.33333329", "333333333.3333333"),
        ];
        for (text, printed) in cases {
            assert_eq!(written(text).as_deref(), Some(printed), "{text}");
        }
    }

    #[test]
    fn lost_values_are_refused() {
        for text in [
            "9007199254740993",
            "-9007199254740993",
            "12345678901234567890",
            "1e400",
            "-1e400",
            "1e-400",
            "0.0000000001e-400",
            "100000000000000000000000000000000000000000",
            "340282366920938463463374607431768211456",
        ] {
            assert_eq!(written(text), None, "{text}");
        }
    }
}
