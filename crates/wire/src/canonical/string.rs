//! Strings with the shortest escapes.

use super::{CanonicalError, CanonicalErrorKind};
use crate::json::{JsonError, JsonErrorKind, scan};

/// A string of the source as the writer met it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    /// What stands between the quotes.
    pub(super) raw: &'a str,
    /// Offset of the first byte of `raw`.
    pub(super) start: usize,
    /// Whether `raw` holds an escape.
    pub(super) escaped: bool,
}

/// Scans the string whose opening quote is at `at`.
pub(super) fn scan(bytes: &[u8], at: usize) -> Result<Found<'_>, JsonError> {
    let start = at + 1;
    let found = scan::string(bytes, start)?;
    Ok(Found { raw: scan::utf8(bytes, start, found.end)?, start, escaped: found.escaped })
}

/// Writes a string with its quotes.
pub(super) fn write(out: &mut Vec<u8>, found: Found<'_>) -> Result<(), CanonicalError> {
    out.push(b'"');
    if found.escaped {
        write_escaped(out, found)?;
    } else {
        out.extend_from_slice(found.raw.as_bytes());
    }
    out.push(b'"');
    Ok(())
}

/// Copies runs that are canonical, `\n` and `\"` among them, and rewrites the escapes that are not.
fn write_escaped(out: &mut Vec<u8>, found: Found<'_>) -> Result<(), CanonicalError> {
    let bytes = found.raw.as_bytes();
    let (mut copied, mut at) = (0, 0);
    while let Some(place) = find_backslash(bytes, at) {
        match bytes.get(place + 1) {
            Some(b'/') => {
                out.extend_from_slice(bytes.get(copied..place).unwrap_or_default());
                copied = place + 1;
                at = place + 2;
            }
            Some(b'u') => {
                out.extend_from_slice(bytes.get(copied..place).unwrap_or_default());
                let (character, end) = decode_unicode(bytes, place)
                    .ok_or(CanonicalError::new(found.start + place, CanonicalErrorKind::LoneSurrogate))?;
                push_character(out, character);
                (copied, at) = (end, end);
            }
            _ => at = place + 2,
        }
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Ok(())
}

fn find_backslash(bytes: &[u8], mut at: usize) -> Option<usize> {
    // Escapes such as `\n` stand close together in stored output, so a plain loop beats a vector search's start-up.
    while let Some(block) = bytes.get(at..at + 16) {
        if block.iter().fold(0_u8, |seen, byte| seen | u8::from(*byte == b'\\')) != 0 {
            break;
        }
        at += 16;
    }
    bytes.get(at..)?.iter().position(|byte| *byte == b'\\').map(|place| at + place)
}

/// The character of the `\u` escape at `at`, and the offset behind it; `None` for half of a pair.
fn decode_unicode(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = hex4(bytes, at + 2)?;
    if !(0xD800..0xE000).contains(&unit) {
        return Some((char::from_u32(unit)?, at + 6));
    }
    let low = if bytes.get(at + 6..at + 8)? == b"\\u" { hex4(bytes, at + 8)? } else { return None };
    if unit >= 0xDC00 || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    Some((char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00))?, at + 12))
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Writes one character of a string, escaped where JSON demands it (RFC 8785 section 3.2.2.2).
pub(super) fn push_character(out: &mut Vec<u8>, character: char) {
    let short = match character {
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{c}' => b'f',
        '\r' => b'r',
        '"' => b'"',
        '\\' => b'\\',
        '\0'..='\u{1f}' => {
            out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            return;
        }
        other => {
            out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// The decoded string, for keys with escapes.
pub(super) fn decode(found: Found<'_>) -> Result<String, CanonicalError> {
    let mut characters = crate::json::Characters::new(found.raw);
    characters
        .by_ref()
        .collect::<Result<String, _>>()
        .map_err(|lone| CanonicalError::new(found.start + lone.offset, CanonicalErrorKind::LoneSurrogate))
}

/// An error where the grammar demands something else at `at`, or the text ends there.
pub(super) fn unexpected(bytes: &[u8], at: usize) -> JsonError {
    let kind = if at < bytes.len() { JsonErrorKind::UnexpectedByte } else { JsonErrorKind::UnexpectedEnd };
    JsonError::new(at, kind)
}
