//! The bytes below [`super::walk`]: a buffer, and scalars read from it.

use std::io::{self, Read};

use memchr::memchr2;

use super::{JsonError, KEPT_BYTES_MAX, Value};

const BUFFER_BYTES: usize = 16 * 1024;

/// Pieces of a decoded string are handed on when they reach this size.
const PIECE_BYTES: usize = 32 * 1024;

/// A cursor over the bytes of one JSON value.
pub(super) struct Tokens<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Bytes before the buffer.
    passed: u64,
}

impl<R: Read> Tokens<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES], at: 0, filled: 0, passed: 0 }
    }

    /// Bytes consumed.
    pub(super) fn position(&self) -> u64 {
        self.passed + self.at as u64
    }

    pub(super) fn peek(&mut self) -> Result<Option<u8>, JsonError> {
        if self.at == self.filled {
            self.passed += self.filled as u64;
            self.at = 0;
            self.filled = self.read()?;
        }
        Ok(self.buffer[..self.filled].get(self.at).copied())
    }

    fn read(&mut self) -> io::Result<usize> {
        loop {
            match self.source.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Consumes a byte that was peeked at and returns the position after it.
    pub(super) fn take(&mut self) -> Result<u64, JsonError> {
        self.next()?;
        Ok(self.position())
    }

    fn next(&mut self) -> Result<u8, JsonError> {
        let byte = self.peek()?.ok_or(JsonError::Malformed(self.position()))?;
        self.at += 1;
        Ok(byte)
    }

    fn malformed<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Malformed(self.position()))
    }

    /// Skips white space and returns the position.
    pub(super) fn skip_space(&mut self) -> Result<u64, JsonError> {
        while matches!(self.peek()?, Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        Ok(self.position())
    }

    /// Nothing but white space follows.
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        self.skip_space()?;
        if self.peek()?.is_none() { Ok(()) } else { self.malformed() }
    }

    /// A key and its colon.
    pub(super) fn key(&mut self) -> Result<Option<Box<str>>, JsonError> {
        let key = self.short_string()?;
        self.skip_space()?;
        if self.next()? != b':' {
            return self.malformed();
        }
        Ok(key)
    }

    pub(super) fn scalar(&mut self) -> Result<Value, JsonError> {
        match self.peek()? {
            Some(b'"') => Ok(Value::Text(self.short_string()?)),
            Some(b't') => self.literal(b"true", Value::Bool(true)),
            Some(b'f') => self.literal(b"false", Value::Bool(false)),
            Some(b'n') => self.literal(b"null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.malformed(),
        }
    }

    fn literal(&mut self, expected: &[u8], value: Value) -> Result<Value, JsonError> {
        for byte in expected {
            if self.next()? != *byte {
                return self.malformed();
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let mut spelled = String::new();
        self.take_if(&mut spelled, b"-")?;
        if !self.take_if(&mut spelled, b"0")? {
            self.digits(&mut spelled)?;
        }
        if self.take_if(&mut spelled, b".")? {
            self.digits(&mut spelled)?;
        }
        if self.take_if(&mut spelled, b"eE")? {
            self.take_if(&mut spelled, b"+-")?;
            self.digits(&mut spelled)?;
        }
        let is_short = spelled.len() <= KEPT_BYTES_MAX;
        Ok(Value::Number(is_short.then(|| spelled.into_boxed_str())))
    }

    fn take_if(&mut self, spelled: &mut String, allowed: &[u8]) -> Result<bool, JsonError> {
        let Some(byte) = self.peek()?.filter(|byte| allowed.contains(byte)) else { return Ok(false) };
        self.at += 1;
        // One more than is kept tells that it is too long.
        if spelled.len() <= KEPT_BYTES_MAX {
            spelled.push(char::from(byte));
        }
        Ok(true)
    }

    fn digits(&mut self, spelled: &mut String) -> Result<(), JsonError> {
        if !self.take_if(spelled, b"0123456789")? {
            return self.malformed();
        }
        while self.take_if(spelled, b"0123456789")? {}
        Ok(())
    }

    /// A string, decoded where it is short.
    fn short_string(&mut self) -> Result<Option<Box<str>>, JsonError> {
        let mut kept = String::new();
        let mut is_short = true;
        self.string(KEPT_BYTES_MAX, &mut |piece| {
            is_short &= kept.len() + piece.len() <= KEPT_BYTES_MAX;
            if is_short {
                kept.push_str(piece);
            }
            Ok(())
        })?;
        Ok(is_short.then(|| kept.into_boxed_str()))
    }

    pub(super) fn decode_string(
        &mut self,
        mut each: impl FnMut(&str) -> io::Result<()>,
    ) -> Result<(), JsonError> {
        self.string(PIECE_BYTES, &mut each)?;
        self.end()
    }

    fn string(
        &mut self,
        piece_bytes: usize,
        each: &mut dyn FnMut(&str) -> io::Result<()>,
    ) -> Result<(), JsonError> {
        if self.next()? != b'"' {
            return self.malformed();
        }
        let mut pieces = Pieces { bytes: Vec::new(), limit: piece_bytes, each };
        let mut high: Option<u16> = None;
        loop {
            if self.peek()?.is_none() {
                return self.malformed();
            }
            let rest = &self.buffer[self.at..self.filled];
            let plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            if plain > 0 {
                if let Some(control) = rest[..plain].iter().position(|byte| *byte < 0x20) {
                    return Err(JsonError::Malformed(self.position() + control as u64));
                }
                pieces.lone(&mut high)?;
                pieces.add(&rest[..plain])?;
                self.at += plain;
                continue;
            }
            if self.next()? == b'"' {
                pieces.lone(&mut high)?;
                return pieces.finish();
            }
            self.escape(&mut pieces, &mut high)?;
        }
    }

    fn escape(&mut self, pieces: &mut Pieces<'_>, high: &mut Option<u16>) -> Result<(), JsonError> {
        let character = match self.next()? {
            b'u' => return self.unit().and_then(|unit| pieces.unit(unit, high)),
            b'b' => b'\x08',
            b'f' => b'\x0c',
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            same @ (b'"' | b'\\' | b'/') => same,
            _ => return self.malformed(),
        };
        pieces.lone(high)?;
        pieces.add(&[character])
    }

    fn unit(&mut self) -> Result<u16, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = char::from(self.next()?).to_digit(16);
            let Some(digit) = digit.and_then(|digit| u16::try_from(digit).ok()) else {
                return self.malformed();
            };
            unit = unit << 4 | digit;
        }
        Ok(unit)
    }
}

/// Collects decoded bytes and hands them on as text, cut between characters.
struct Pieces<'a> {
    bytes: Vec<u8>,
    limit: usize,
    each: &'a mut dyn FnMut(&str) -> io::Result<()>,
}

impl Pieces<'_> {
    fn add(&mut self, mut bytes: &[u8]) -> Result<(), JsonError> {
        while !bytes.is_empty() {
            // Room for the rest of a character that was cut at the end of the last piece.
            let (now, later) = bytes.split_at(bytes.len().min(self.limit));
            self.bytes.extend_from_slice(now);
            bytes = later;
            if self.bytes.len() >= self.limit {
                self.flush(false)?;
            }
        }
        Ok(())
    }

    /// One UTF-16 unit of an escape; `high` holds the first half of a pair.
    fn unit(&mut self, unit: u16, high: &mut Option<u16>) -> Result<(), JsonError> {
        let text: String = match (high.take(), unit) {
            (Some(first), 0xdc00..=0xdfff) => String::from_utf16_lossy(&[first, unit]),
            (first, 0xd800..=0xdbff) => {
                *high = Some(unit);
                if first.is_none() {
                    return Ok(());
                }
                char::REPLACEMENT_CHARACTER.into()
            }
            (first, _) => {
                let mut text = String::new();
                text.extend(first.map(|_| char::REPLACEMENT_CHARACTER));
                text.push_str(&String::from_utf16_lossy(&[unit]));
                text
            }
        };
        self.add(text.as_bytes())
    }

    /// A first half that nothing follows.
    fn lone(&mut self, high: &mut Option<u16>) -> Result<(), JsonError> {
        match high.take() {
            Some(_) => self.add("\u{fffd}".as_bytes()),
            None => Ok(()),
        }
    }

    fn flush(&mut self, is_end: bool) -> Result<(), JsonError> {
        let cut = if is_end { self.bytes.len() } else { whole_characters(&self.bytes) };
        (self.each)(&String::from_utf8_lossy(&self.bytes[..cut]))?;
        self.bytes.drain(..cut);
        Ok(())
    }

    fn finish(mut self) -> Result<(), JsonError> {
        if self.bytes.is_empty() { Ok(()) } else { self.flush(true) }
    }
}

/// Bytes up to the last place where no character is cut.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.iter().rev().take(4).position(|byte| *byte & 0xc0 != 0x80);
    let Some(back) = tail else { return bytes.len() };
    let lead = bytes.len() - 1 - back;
    let length = match bytes[lead] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    if bytes.len() - lead < length { lead } else { bytes.len() }
}
