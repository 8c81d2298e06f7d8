//! Pulling values out of a document or of its first bytes.

use std::ops::Range;

use super::{JsonError, JsonErrorKind, Text, scan};
use crate::limits::JSON_DEPTH_MAX;

/// The type of a value, known from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// A number.
    Number,
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`.
    Null,
}

/// A position in JSON text. Every method moves forward over what it accepts; after an error the position is not specified.
///
/// Inside an object: [`begin_object`](Self::begin_object), then [`next_member`](Self::next_member) and one value in turn, until it
/// answers `None`. Inside an array: the same with [`begin_array`](Self::begin_array) and [`next_element`](Self::next_element).
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// Whether the next member or element is the first of its container.
    fresh: bool,
    whole: bool,
    /// Where the newest member or element begins.
    entry: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` as one whole document.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0, fresh: true, whole: true, entry: 0 }
    }

    /// Reads the first bytes of a document that may go on: what is cut off anywhere, also inside a character or an escape, ends in
    /// [`JsonErrorKind::UnexpectedEnd`].
    pub const fn prefix(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0, fresh: true, whole: false, entry: 0 }
    }

    /// Reads the value that begins at `offset` of `bytes`, for instance at the start of a range that [`skip`](Self::skip) gave.
    pub const fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, at: offset, depth: 0, fresh: true, whole: true, entry: 0 }
    }

    /// Offset in bytes of the position.
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Offset in bytes of the key or element that the newest [`next_member`](Self::next_member) or
    /// [`next_element`](Self::next_element) found. Moving over a value inside it changes the answer.
    pub const fn entry_start(&self) -> usize {
        self.entry
    }

    /// The type of the next value. Moves over white space only.
    ///
    /// # Errors
    /// Where no value begins here.
    pub fn peek(&mut self) -> Result<Kind, JsonError> {
        self.at = scan::skip_space(self.bytes, self.at);
        match self.bytes.get(self.at) {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't') => Ok(Kind::True),
            Some(b'f') => Ok(Kind::False),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => Err(self.error(JsonErrorKind::UnexpectedByte)),
            None => Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
    }

    /// Enters the object that comes next.
    ///
    /// # Errors
    /// Where something else comes next, or the nesting is too deep.
    pub fn begin_object(&mut self) -> Result<(), JsonError> {
        self.begin(Kind::Object)
    }

    /// Enters the array that comes next.
    ///
    /// # Errors
    /// As [`begin_object`](Self::begin_object).
    pub fn begin_array(&mut self) -> Result<(), JsonError> {
        self.begin(Kind::Array)
    }

    fn begin(&mut self, kind: Kind) -> Result<(), JsonError> {
        if self.peek()? != kind {
            return Err(self.error(JsonErrorKind::UnexpectedType));
        }
        if self.depth == JSON_DEPTH_MAX {
            return Err(self.error(JsonErrorKind::TooDeep));
        }
        self.depth += 1;
        self.at += 1;
        self.fresh = true;
        Ok(())
    }

    /// The key of the next member of the object, with the position at its value; `None` behind the object.
    ///
    /// # Errors
    /// Where neither a member nor the end of the object comes next.
    pub fn next_member(&mut self) -> Result<Option<Text<'a>>, JsonError> {
        if !self.next_entry(b'}')? {
            return Ok(None);
        }
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.error(JsonErrorKind::UnexpectedByte));
        }
        let key = self.string()?;
        self.at = scan::skip_space(self.bytes, self.at);
        match self.bytes.get(self.at) {
            Some(b':') => self.at += 1,
            Some(_) => return Err(self.error(JsonErrorKind::UnexpectedByte)),
            None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
        Ok(Some(key))
    }

    /// Whether the array has another element, with the position at it; `false` behind the array.
    ///
    /// # Errors
    /// Where neither an element nor the end of the array comes next.
    pub fn next_element(&mut self) -> Result<bool, JsonError> {
        self.next_entry(b']')
    }

    fn next_entry(&mut self, close: u8) -> Result<bool, JsonError> {
        self.at = scan::skip_space(self.bytes, self.at);
        match self.bytes.get(self.at) {
            Some(&byte) if byte == close => {
                self.at += 1;
                self.depth = self.depth.saturating_sub(1);
                self.fresh = false;
                return Ok(false);
            }
            Some(b',') if !self.fresh => self.at += 1,
            Some(_) if self.fresh => {}
            Some(_) => return Err(self.error(JsonErrorKind::UnexpectedByte)),
            None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
        self.fresh = false;
        // A closing bracket must not follow a comma.
        self.peek()?;
        self.entry = self.at;
        Ok(true)
    }

    /// The string that comes next.
    ///
    /// # Errors
    /// Where something else comes next, or the string is not well formed.
    pub fn string(&mut self) -> Result<Text<'a>, JsonError> {
        if self.peek()? != Kind::String {
            return Err(self.error(JsonErrorKind::UnexpectedType));
        }
        let start = self.at + 1;
        let found = scan::string(self.bytes, start)?;
        let raw = scan::utf8(self.bytes, start, found.end)?;
        self.at = found.end + 1;
        Ok(Text { raw, escaped: found.escaped })
    }

    /// The number that comes next, as it is spelled.
    ///
    /// # Errors
    /// Where something else comes next, or it is cut off.
    pub fn number(&mut self) -> Result<&'a str, JsonError> {
        if self.peek()? != Kind::Number {
            return Err(self.error(JsonErrorKind::UnexpectedType));
        }
        let start = self.at;
        self.at = scan::number(self.bytes, start, self.whole)?.end;
        scan::utf8(self.bytes, start, self.at)
    }

    /// Moves over the next value, whatever it is, and answers its range (without white space around it).
    ///
    /// # Errors
    /// Where it is not well formed or nested too deeply.
    pub fn skip(&mut self) -> Result<Range<usize>, JsonError> {
        let kind = self.peek()?;
        let start = self.at;
        match kind {
            Kind::Object | Kind::Array => self.skip_container(kind)?,
            Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => self.skip_scalar(kind)?,
        }
        Ok(start..self.at)
    }

    /// Moves from the start of the next value to `end`, its end as [`skip`](Self::skip) found it before, and answers its range. Nothing is
    /// looked at again.
    pub const fn skip_to(&mut self, end: usize) -> Range<usize> {
        let start = self.at;
        self.at = end;
        self.fresh = false;
        start..end
    }

    fn skip_scalar(&mut self, kind: Kind) -> Result<(), JsonError> {
        self.at = match kind {
            Kind::String => {
                let found = scan::string(self.bytes, self.at + 1)?;
                if found.wide {
                    scan::utf8(self.bytes, self.at + 1, found.end)?;
                }
                found.end + 1
            }
            Kind::Number => scan::number(self.bytes, self.at, self.whole)?.end,
            Kind::True => scan::literal(self.bytes, self.at, b"true")?,
            Kind::False => scan::literal(self.bytes, self.at, b"false")?,
            Kind::Null | Kind::Object | Kind::Array => scan::literal(self.bytes, self.at, b"null")?,
        };
        Ok(())
    }

    /// Moves over the container that comes next without recursion: one bit per open container says whether it is an object.
    fn skip_container(&mut self, kind: Kind) -> Result<(), JsonError> {
        let outside = self.depth;
        let mut objects = [0_u64; JSON_DEPTH_MAX / 64];
        self.open(kind, &mut objects)?;
        while self.depth > outside {
            let inner = self.depth - 1;
            let in_object = objects[inner / 64] >> (inner % 64) & 1 == 1;
            let more = if in_object { self.next_member()?.is_some() } else { self.next_element()? };
            if !more {
                continue;
            }
            match self.peek()? {
                kind @ (Kind::Object | Kind::Array) => self.open(kind, &mut objects)?,
                kind @ (Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null) => {
                    self.skip_scalar(kind)?;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, kind: Kind, objects: &mut [u64; JSON_DEPTH_MAX / 64]) -> Result<(), JsonError> {
        self.begin(kind)?;
        let inner = self.depth - 1;
        let bit = 1 << (inner % 64);
        match kind {
            Kind::Object => objects[inner / 64] |= bit,
            Kind::Array | Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => {
                objects[inner / 64] &= !bit;
            }
        }
        Ok(())
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    /// [`JsonErrorKind::TrailingData`] otherwise.
    pub fn finish(&mut self) -> Result<(), JsonError> {
        self.at = scan::skip_space(self.bytes, self.at);
        if self.at < self.bytes.len() { Err(self.error(JsonErrorKind::TrailingData)) } else { Ok(()) }
    }

    const fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError::new(self.at, kind)
    }
}

/// Checks that `bytes` is one JSON document.
///
/// # Errors
/// [`JsonError`] with the first byte that cannot be accepted.
pub fn ensure_json(bytes: &[u8]) -> Result<(), JsonError> {
    let mut reader = Reader::new(bytes);
    reader.skip()?;
    reader.finish()
}
