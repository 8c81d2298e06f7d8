//! What bytes make a token of JSON, for bytes that are at hand.

/// Where the string ends whose inside `bytes` begin with: the offset of its closing quote. `None` where that or an escape before it is not
/// there whole, or an escape is none: reading it step by step tells.
pub(super) fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', &bytes[at..])?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += match bytes.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => hex_unit(bytes.get(at + 2..at + 6)?).map(|_| 6)?,
            _ => return None,
        };
    }
}

/// The UTF-16 unit that four hexadecimal digits name.
pub(in crate::search) fn hex_unit(digits: &[u8]) -> Option<u16> {
    if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// White space between tokens.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a token is a number (RFC 8259 section 6).
pub(super) fn is_number(token: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = token.strip_prefix(b"-").unwrap_or(token);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(after) = rest.strip_prefix(b".") {
        let fraction = digits(after);
        if fraction == 0 {
            return false;
        }
        rest = &after[fraction..];
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let after = after.strip_prefix(b"+").or_else(|| after.strip_prefix(b"-")).unwrap_or(after);
        return !after.is_empty() && digits(after) == after.len();
    }
    rest.is_empty()
}
