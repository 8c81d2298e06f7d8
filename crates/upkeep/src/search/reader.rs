//! A JSON reader that holds no value: it walks a stored row of any size in bounded memory and hands out the strings it is asked for.
//!
//! It is lenient where that costs nothing (raw control characters in strings, bytes that are not UTF-8, lone surrogates become
//! U+FFFD) and strict about structure, so that a row cut off or damaged is reported and never half understood.

use std::io::{self, BufRead};

mod token;

#[cfg(test)]
mod tests;

pub(super) use token::hex_unit;
use token::{closing_quote, is_number, is_space};

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

fn emit(c: char, sink: &mut impl Sink) {
    sink.piece(c.encode_utf8(&mut [0; 4]).as_bytes());
}
