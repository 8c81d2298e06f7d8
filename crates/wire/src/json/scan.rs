//! The lexical level: where a string or a number ends.

use super::{JsonError, JsonErrorKind};

/// A string's end and what was seen on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringScan {
    /// Offset of the closing quote.
    pub(crate) end: usize,
    /// Whether there is an escape.
    pub(crate) escaped: bool,
    /// Whether there is a byte above 0x7F.
    pub(crate) wide: bool,
}

/// The first offset from `at` that is not white space.
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The first offset from `at` whose byte is a quote, a backslash or a control character; the length where there is none. The
/// second value is non-zero where a byte above 0x7F was passed.
pub(crate) fn plain_run(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut high = 0_u8;
    // A fold without a branch inside, which compiles to vector instructions.
    while let Some(block) = bytes.get(at..at + 32) {
        let (mut stop, mut seen) = (0_u8, 0_u8);
        for &byte in block {
            stop |= u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
            seen |= byte;
        }
        if stop != 0 {
            break;
        }
        high |= seen;
        at += 32;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            break;
        }
        high |= byte;
        at += 1;
    }
    (at, high & 0x80 != 0)
}

/// Scans a string whose first content byte is at `start` (the quote is before it). UTF-8 is not checked here.
pub(crate) fn string(bytes: &[u8], start: usize) -> Result<StringScan, JsonError> {
    let mut scan = StringScan { end: start, escaped: false, wide: false };
    loop {
        let (at, wide) = plain_run(bytes, scan.end);
        scan.wide |= wide;
        match bytes.get(at) {
            None => return Err(JsonError::new(at, JsonErrorKind::UnexpectedEnd)),
            Some(b'"') => return Ok(StringScan { end: at, ..scan }),
            Some(b'\\') => {
                scan.escaped = true;
                scan.end = escape(bytes, at)?;
            }
            Some(_) => return Err(JsonError::new(at, JsonErrorKind::ControlCharacter)),
        }
    }
}

/// The offset behind the escape whose backslash is at `at`.
fn escape(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        None => Err(JsonError::new(at + 1, JsonErrorKind::UnexpectedEnd)),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            for place in at + 2..at + 6 {
                match bytes.get(place) {
                    None => return Err(JsonError::new(place, JsonErrorKind::UnexpectedEnd)),
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => return Err(JsonError::new(at, JsonErrorKind::BadEscape)),
                }
            }
            Ok(at + 6)
        }
        Some(_) => Err(JsonError::new(at, JsonErrorKind::BadEscape)),
    }
}

/// A number's end and form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberScan {
    /// Offset behind the last character.
    pub(crate) end: usize,
    /// Whether it has neither fraction nor exponent.
    pub(crate) integer: bool,
}

/// Scans the number that begins at `start`. Where the text may go on behind its end (`whole` is false), a number that reaches the
/// end is not known to be complete.
pub(crate) fn number(bytes: &[u8], start: usize, whole: bool) -> Result<NumberScan, JsonError> {
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    at = match bytes.get(at) {
        Some(b'0') => at + 1,
        Some(b'1'..=b'9') => digits(bytes, at),
        found => return Err(number_error(found, at)),
    };
    let mut integer = true;
    if bytes.get(at) == Some(&b'.') {
        integer = false;
        at = some_digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        integer = false;
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = some_digits(bytes, at)?;
    }
    if at == bytes.len() && !whole {
        return Err(JsonError::new(at, JsonErrorKind::UnexpectedEnd));
    }
    Ok(NumberScan { end: at, integer })
}

fn some_digits(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match digits(bytes, at) {
        end if end > at => Ok(end),
        _ => Err(number_error(bytes.get(at), at)),
    }
}

fn digits(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

const fn number_error(found: Option<&u8>, at: usize) -> JsonError {
    match found {
        None => JsonError::new(at, JsonErrorKind::UnexpectedEnd),
        Some(_) => JsonError::new(at, JsonErrorKind::BadNumber),
    }
}

/// The offset behind `word` (`true`, `false`, `null`) at `at`.
pub(crate) fn literal(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, JsonError> {
    for (place, wanted) in (at..).zip(word) {
        match bytes.get(place) {
            None => return Err(JsonError::new(place, JsonErrorKind::UnexpectedEnd)),
            Some(found) if found == wanted => {}
            Some(_) => return Err(JsonError::new(place, JsonErrorKind::UnexpectedByte)),
        }
    }
    Ok(at + word.len())
}

/// Checks that `bytes[start..end]`, the content of a string, is UTF-8.
pub(crate) fn utf8(bytes: &[u8], start: usize, end: usize) -> Result<&str, JsonError> {
    std::str::from_utf8(bytes.get(start..end).unwrap_or_default())
        .map_err(|error| JsonError::new(start + error.valid_up_to(), JsonErrorKind::InvalidUtf8))
}
