//! A JSON reader that holds no value: it walks a stored row of any size in bounded memory and hands out the strings it is asked for.
//!
//! It is lenient where that costs nothing (raw control characters in strings, bytes that are not UTF-8, lone surrogates become
//! U+FFFD) and strict about structure, so that a row cut off or damaged is reported and never half understood.

use std::io::{self, BufRead};

/// Deepest nesting of objects and arrays; deeper rows are unreadable.
pub(crate) const DEPTH_MAX: u32 = 256;

/// Longest number in bytes.
const NUMBER_BYTES_MAX: usize = 512;

/// Decoded bytes of one string that are handed out at a time.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Why a row cannot be read. Carries no content.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// Not JSON.
    #[error("not JSON")]
    Malformed,
    /// Nested deeper than [`DEPTH_MAX`].
    #[error("nested deeper than {DEPTH_MAX}")]
    TooDeep,
    /// The bytes cannot be had.
    #[error("read failed")]
    Io(#[from] io::Error),
}

/// What the next value is, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A number, `true`, `false` or `null`.
    Scalar,
}

/// Takes the decoded bytes of one string piece by piece. A piece may end inside a character.
pub(crate) trait Sink {
    /// The next bytes.
    fn piece(&mut self, bytes: &[u8]);
}

impl Sink for () {
    fn piece(&mut self, _: &[u8]) {}
}

/// Keeps the first bytes of a string; enough for keys, types and ids.
#[derive(Debug, Default)]
pub(crate) struct Short {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Short {
    const BYTES_MAX: usize = 1024;

    /// The string, where it fitted and is UTF-8.
    pub(crate) fn as_str(&self) -> Option<&str> {
        if self.is_cut { None } else { std::str::from_utf8(&self.bytes).ok() }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.is_cut = false;
    }
}

impl Sink for Short {
    fn piece(&mut self, bytes: &[u8]) {
        let room = Self::BYTES_MAX - self.bytes.len();
        self.is_cut |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Reads one JSON text from `R`.
pub(crate) struct Reader<R> {
    input: R,
    depth: u32,
}

impl<R: BufRead> Reader<R> {
    /// Starts at the first byte of `input`.
    pub(crate) fn new(input: R) -> Self {
        Self { input, depth: 0 }
    }

    /// The kind of the value that comes next.
    pub(crate) fn kind(&mut self) -> Result<Kind, ReadError> {
        Ok(match self.peek()? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            _ => Kind::Scalar,
        })
    }

    /// Enters an object or array, whose opening byte must come next.
    pub(crate) fn open(&mut self, kind: Kind) -> Result<(), ReadError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ReadError::TooDeep);
        }
        self.expect(if kind == Kind::Object { b'{' } else { b'[' })
    }

    /// Goes to the next member and reads its key into `key`, or leaves the object and answers false.
    pub(crate) fn member(&mut self, is_first: bool, key: &mut Short) -> Result<bool, ReadError> {
        if !self.separator(is_first, b'}')? {
            return Ok(false);
        }
        key.clear();
        self.string(key)?;
        self.expect(b':')?;
        Ok(true)
    }

    /// Goes to the next element, or leaves the array and answers false.
    pub(crate) fn element(&mut self, is_first: bool) -> Result<bool, ReadError> {
        self.separator(is_first, b']')
    }

    /// Reads the string that comes next.
    pub(crate) fn string(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        self.expect(b'"')?;
        self.rest_of_string(sink)
    }

    /// Reads the string that comes next, or passes over it and answers false where `matters` says that its bytes as stored, without the
    /// quotes, have nothing in them. A string that does not lie whole in the bytes at hand is read in any case.
    pub(crate) fn string_where(
        &mut self,
        sink: &mut impl Sink,
        matters: impl FnOnce(&[u8]) -> bool,
    ) -> Result<bool, ReadError> {
        self.expect(b'"')?;
        let buffer = self.fill()?;
        if let Some(end) = closing_quote(buffer)
            && !matters(&buffer[..end])
        {
            self.input.consume(end + 1);
            return Ok(false);
        }
        self.rest_of_string(sink)?;
        Ok(true)
    }

    fn rest_of_string(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        loop {
            let buffer = self.fill()?;
            let end = memchr::memchr2(b'"', b'\\', buffer).unwrap_or(buffer.len());
            for piece in buffer[..end].chunks(PIECE_BYTES) {
                sink.piece(piece);
            }
            let stop = buffer.get(end).copied();
            self.input.consume(end + usize::from(stop.is_some()));
            match stop {
                Some(b'"') => return Ok(()),
                Some(_) => self.escape(sink)?,
                None => {}
            }
        }
    }

    /// Reads a number or literal; `Some` for `true` and `false`.
    pub(crate) fn scalar(&mut self) -> Result<Option<bool>, ReadError> {
        let mut token = Vec::new();
        loop {
            let buffer = self.input.fill_buf()?;
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            let length = buffer.iter().take_while(|byte| is_part(byte)).count();
            token.extend_from_slice(&buffer[..length.min(NUMBER_BYTES_MAX)]);
            let is_end = length < buffer.len() || buffer.is_empty();
            self.input.consume(length);
            if token.len() > NUMBER_BYTES_MAX {
                return Err(ReadError::Malformed);
            }
            if is_end {
                break;
            }
        }
        match token.as_slice() {
            b"true" => Ok(Some(true)),
            b"false" => Ok(Some(false)),
            b"null" => Ok(None),
            number if is_number(number) => Ok(None),
            _ => Err(ReadError::Malformed),
        }
    }

    /// Passes over the value that comes next.
    pub(crate) fn skip(&mut self) -> Result<(), ReadError> {
        match self.kind()? {
            Kind::String => self.string_where(&mut (), |_| false).map(drop),
            Kind::Scalar => self.scalar().map(drop),
            Kind::Array => {
                self.open(Kind::Array)?;
                let mut is_first = true;
                while self.element(is_first)? {
                    self.skip()?;
                    is_first = false;
                }
                Ok(())
            }
            Kind::Object => {
                self.open(Kind::Object)?;
                let (mut is_first, mut key) = (true, Short::default());
                while self.member(is_first, &mut key)? {
                    self.skip()?;
                    is_first = false;
                }
                Ok(())
            }
        }
    }

    /// Makes sure that only white space follows.
    pub(crate) fn finish(&mut self) -> Result<(), ReadError> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            if !buffer.iter().all(|byte| is_space(*byte)) {
                return Err(ReadError::Malformed);
            }
            let length = buffer.len();
            self.input.consume(length);
        }
    }

    fn separator(&mut self, is_first: bool, close: u8) -> Result<bool, ReadError> {
        let next = self.peek()?;
        if next == close {
            self.input.consume(1);
            self.depth -= 1;
            return Ok(false);
        }
        if !is_first {
            self.expect(b',')?;
        }
        Ok(true)
    }

    fn escape(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        let decoded = match self.next()? {
            b'u' => return self.unicode_escape(sink),
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            byte @ (b'"' | b'\\' | b'/') => byte,
            _ => return Err(ReadError::Malformed),
        };
        sink.piece(&[decoded]);
        Ok(())
    }

    /// Decodes `\uXXXX`, joining surrogate pairs. A lone surrogate becomes U+FFFD, and the text after it is kept.
    fn unicode_escape(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        let mut high = None;
        loop {
            let unit = self.hex_unit()?;
            let decoded = match (high, unit) {
                (Some(high), 0xdc00..=0xdfff) => {
                    let code = 0x1_0000 + ((u32::from(high) - 0xd800) << 10) + (u32::from(unit) - 0xdc00);
                    char::from_u32(code)
                }
                (high, _) => {
                    if high.is_some() {
                        emit(char::REPLACEMENT_CHARACTER, sink);
                    }
                    char::from_u32(u32::from(unit))
                }
            };
            let is_high = decoded.is_none() && (0xd800..=0xdbff).contains(&unit);
            if !is_high {
                emit(decoded.unwrap_or(char::REPLACEMENT_CHARACTER), sink);
                return Ok(());
            }
            // Whatever follows the high surrogate decides: only another \u can complete it.
            if self.peek_raw()? != b'\\' {
                emit(char::REPLACEMENT_CHARACTER, sink);
                return Ok(());
            }
            self.input.consume(1);
            if self.peek_raw()? != b'u' {
                emit(char::REPLACEMENT_CHARACTER, sink);
                return self.escape(sink);
            }
            self.input.consume(1);
            high = Some(unit);
        }
    }

    fn hex_unit(&mut self) -> Result<u16, ReadError> {
        let mut digits = [0; 4];
        for digit in &mut digits {
            *digit = self.next()?;
        }
        hex_unit(&digits).ok_or(ReadError::Malformed)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), ReadError> {
        if self.peek()? != wanted {
            return Err(ReadError::Malformed);
        }
        self.input.consume(1);
        Ok(())
    }

    /// The next byte that is not white space, left in place.
    fn peek(&mut self) -> Result<u8, ReadError> {
        loop {
            let buffer = self.fill()?;
            let spaces = buffer.iter().take_while(|byte| is_space(**byte)).count();
            let found = buffer.get(spaces).copied();
            if spaces > 0 {
                self.input.consume(spaces);
            }
            if let Some(byte) = found {
                return Ok(byte);
            }
        }
    }

    fn peek_raw(&mut self) -> Result<u8, ReadError> {
        self.fill().map(|buffer| buffer[0])
    }

    fn next(&mut self) -> Result<u8, ReadError> {
        let byte = self.peek_raw()?;
        self.input.consume(1);
        Ok(byte)
    }

    /// Bytes that are there, at least one.
    fn fill(&mut self) -> Result<&[u8], ReadError> {
        let buffer = self.input.fill_buf()?;
        if buffer.is_empty() { Err(ReadError::Malformed) } else { Ok(buffer) }
    }
}

/// Where the string ends whose inside `bytes` begin with: the offset of its closing quote. `None` where that or an escape before it is not
/// there whole, or an escape is none: reading it step by step tells.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
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

fn emit(c: char, sink: &mut impl Sink) {
    sink.piece(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The UTF-16 unit that four hexadecimal digits name.
pub(super) fn hex_unit(digits: &[u8]) -> Option<u16> {
    if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// RFC 8259 section 6.
fn is_number(token: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Whole(Vec<u8>);

    impl Sink for Whole {
        fn piece(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
    }

    fn decoded(json: &str, capacity: usize) -> Result<String, ReadError> {
        let mut whole = Whole::default();
        let mut reader = Reader::new(BufReader::with_capacity(capacity, json.as_bytes()));
        reader.string(&mut whole)?;
        reader.finish()?;
        Ok(String::from_utf8_lossy(&whole.0).into_owned())
    }

    fn walks(json: &[u8], capacity: usize) -> bool {
        let mut reader = Reader::new(BufReader::with_capacity(capacity, json));
        reader.skip().and_then(|()| reader.finish()).is_ok()
    }

    #[test]
    fn escapes_decode_at_every_chunk_size() {
        let table = [
            (r#""plain""#, "plain"),
            (r#""a\n\t\r\b\f\"\\\/z""#, "a\n\t\r\u{8}\u{c}\"\\/z"),
            (r#""\u00e9\u212A""#, "é\u{212a}"),
            (r#""\ud83d\ude00!""#, "😀!"),
            (r#""\ud83d!""#, "\u{fffd}!"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ude00\u0041""#, "\u{fffd}A"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
        ];
        for (json, text) in table {
            for capacity in [1, 2, 3, 64] {
                assert_eq!(decoded(json, capacity).unwrap(), text, "{json} {capacity}");
            }
        }
    }

    #[test]
    fn a_string_that_does_not_matter_is_passed_over_where_it_is_whole() {
        for inside in ["plain", "", r#"a\"b\\"#, r"\\", r"\u00e9\ud83d\n"] {
            let json = format!("\"{inside}\" ");
            let mut seen = Vec::new();
            let mut reader = Reader::new(json.as_bytes());
            let is_read = reader.string_where(&mut (), |bytes| {
                seen = bytes.to_vec();
                false
            });
            assert!(!is_read.unwrap(), "{json}");
            assert_eq!(String::from_utf8(seen).unwrap(), inside);
            reader.finish().unwrap();
            let mut reader = Reader::new(BufReader::with_capacity(1, json.as_bytes()));
            assert_eq!(
                reader.string_where(&mut (), |_| false).unwrap(),
                !inside.is_empty(),
                "{json} in pieces"
            );
            reader.finish().unwrap();
        }
        for json in [r#""\x""#, r#""\u12"#, r#""\u12g4""#, r#""a"#, r#""a\"#, r#""a\""#] {
            let mut reader = Reader::new(json.as_bytes());
            assert!(reader.string_where(&mut (), |_| false).is_err(), "{json}");
        }
    }

    #[test]
    fn damage_is_reported() {
        for json in [
            "",
            "{",
            "{\"a\"",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1,]",
            "[1 2]",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "tru",
            "01",
            "1.",
            "1e",
            "-",
            "{} x",
            "{1:2}",
            "nan",
            "[,1]",
            "{\"a\":1 \"b\":2}",
        ] {
            assert!(!walks(json.as_bytes(), 3), "{json}");
        }
        assert!(!walks("[".repeat(257).as_bytes(), 64));
        let deep = format!("{}{}", "[".repeat(256), "]".repeat(256));
        assert!(walks(deep.as_bytes(), 64));
    }

    proptest! {
        #[test]
        fn accepts_what_serde_json_writes(text in "\\PC{0,40}", number in any::<f64>(), capacity in 1_usize..20) {
            let json = serde_json::json!({"a": [text, number, null, true], text.clone(): {"b": text}}).to_string();
            prop_assert!(walks(json.as_bytes(), capacity));
            let cut = json.floor_char_boundary(json.len() - 1);
            prop_assert!(!walks(&json.as_bytes()[..cut], capacity));
            let string = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded(&string, capacity).unwrap(), text);
        }
    }
}
