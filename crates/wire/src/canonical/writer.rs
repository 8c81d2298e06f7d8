//! One pass over a document that writes its canonical form.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use super::string::{self, Found, unexpected};
use super::{CanonicalError, CanonicalErrorKind, key, number};
use crate::json::{JsonError, JsonErrorKind, scan};
use crate::limits::JSON_DEPTH_MAX;

/// What becomes of finished output.
pub(super) trait Sink {
    /// Offers everything written so far; what is taken is removed from the buffer.
    fn take(&mut self, buffer: &mut Vec<u8>);
}

/// Writes canonical JSON into a buffer, which is offered to the sink whenever nothing in it can move any more.
pub(super) struct Writer<'a, S> {
    sink: S,
    out: Vec<u8>,
    /// Members of the objects that are open, outermost first.
    members: Vec<Member<'a>>,
    /// Reused when members are moved.
    moved: Vec<u8>,
}

/// A member of an open object: its decoded key and what was written for it.
struct Member<'a> {
    key: Cow<'a, str>,
    written: Range<usize>,
    /// Where its key stands in the source.
    offset: usize,
}

/// What is still to be done about the member `id` of a part.
#[derive(Clone, Copy)]
enum Added<'i> {
    /// It has not been met.
    Wanted(&'i str),
    /// It was added; a stored one may follow.
    Written(&'i str),
    /// Nothing.
    Done,
}

impl<'a, S: Sink> Writer<'a, S> {
    pub(super) fn new(sink: S, capacity: usize) -> Self {
        Self { sink, out: Vec::with_capacity(capacity), members: Vec::with_capacity(32), moved: Vec::new() }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn flush(&mut self) {
        self.sink.take(&mut self.out);
    }

    /// The sink and what it has not taken.
    pub(super) fn finish(self) -> (S, Vec<u8>) {
        (self.sink, self.out)
    }

    /// Writes a whole document.
    pub(super) fn document(&mut self, json: &'a [u8]) -> Result<(), CanonicalError> {
        let start = scan::skip_space(json, 0);
        let end = if json.get(start) == Some(&b'[') {
            self.array(json, start, 1, true)?
        } else {
            self.value(json, start, 0)?
        };
        ensure_finished(json, end)
    }

    /// Writes a 1.x part with the member `id` added.
    pub(super) fn part(&mut self, id: &str, part: &'a [u8]) -> Result<(), CanonicalError> {
        let start = scan::skip_space(part, 0);
        if part.get(start) != Some(&b'{') {
            let error = if start == part.len() {
                JsonError::new(start, JsonErrorKind::UnexpectedEnd).into()
            } else {
                CanonicalError::new(start, CanonicalErrorKind::NotAnObject)
            };
            return Err(error);
        }
        // The part stands inside the array of parts.
        let end = self.object(part, start, 2, Some(id))?;
        ensure_finished(part, end)
    }

    /// Writes the value at `at`, inside `depth` containers, and answers the offset behind it.
    fn value(&mut self, json: &'a [u8], at: usize, depth: usize) -> Result<usize, CanonicalError> {
        match json.get(at) {
            Some(b'"') => {
                let found = string::scan(json, at)?;
                string::write(&mut self.out, found)?;
                Ok(found.start + found.raw.len() + 1)
            }
            Some(b'{') => self.object(json, at, depth + 1, None),
            Some(b'[') => self.array(json, at, depth + 1, false),
            Some(b'-' | b'0'..=b'9') => self.number(json, at),
            Some(b't') => self.literal(json, at, b"true"),
            Some(b'f') => self.literal(json, at, b"false"),
            Some(b'n') => self.literal(json, at, b"null"),
            _ => Err(unexpected(json, at).into()),
        }
    }

    fn number(&mut self, json: &'a [u8], at: usize) -> Result<usize, CanonicalError> {
        let found = scan::number(json, at, true)?;
        let text = scan::utf8(json, at, found.end)?;
        number::write(&mut self.out, text, found.integer, at)?;
        Ok(found.end)
    }

    fn literal(&mut self, json: &'a [u8], at: usize, word: &[u8]) -> Result<usize, CanonicalError> {
        let end = scan::literal(json, at, word)?;
        self.put(word);
        Ok(end)
    }

    /// Writes the array at `at`. In the outermost one nothing moves once an element is finished, so it is handed on.
    fn array(
        &mut self,
        json: &'a [u8],
        at: usize,
        depth: usize,
        is_outermost: bool,
    ) -> Result<usize, CanonicalError> {
        ensure_depth(at, depth)?;
        self.out.push(b'[');
        let mut at = scan::skip_space(json, at + 1);
        if json.get(at) == Some(&b']') {
            self.out.push(b']');
            return Ok(at + 1);
        }
        loop {
            at = self.value(json, at, depth)?;
            if is_outermost {
                self.flush();
            }
            at = scan::skip_space(json, at);
            match json.get(at) {
                Some(b',') => self.out.push(b','),
                Some(b']') => break,
                _ => return Err(unexpected(json, at).into()),
            }
            at = scan::skip_space(json, at + 1);
        }
        self.out.push(b']');
        Ok(at + 1)
    }

    /// Writes the object at `at`, with a member `id` added where `id` is given.
    fn object(
        &mut self,
        json: &'a [u8],
        at: usize,
        depth: usize,
        id: Option<&str>,
    ) -> Result<usize, CanonicalError> {
        ensure_depth(at, depth)?;
        let first = self.members.len();
        self.out.push(b'{');
        let mut added = id.map_or(Added::Done, Added::Wanted);
        let mut is_sorted = true;
        let mut at = scan::skip_space(json, at + 1);
        while json.get(at) != Some(&b'}') {
            let name = name_at(json, at)?;
            let key = if name.escaped { Cow::Owned(string::decode(name)?) } else { Cow::Borrowed(name.raw) };
            let value = value_after(json, name)?;
            let (before, offset) = (self.out.len(), at);
            let stays = self.settle_id(first, &mut added, &mut is_sorted, &key, json, value)?;
            let start = self.member(first, name)?;
            at = scan::skip_space(json, self.value(json, value, depth)?);
            if stays {
                is_sorted &= self.remember(first, Member { key, written: start..self.out.len(), offset });
            } else {
                self.out.truncate(before);
            }
            at = match json.get(at) {
                Some(b'}') => break,
                Some(b',') => scan::skip_space(json, at + 1),
                _ => return Err(unexpected(json, at).into()),
            };
            if json.get(at) == Some(&b'}') {
                return Err(unexpected(json, at).into());
            }
        }
        if let Added::Wanted(id) = added {
            is_sorted &= self.add_id(first, id);
        }
        if !is_sorted {
            self.sort(first)?;
        }
        self.members.truncate(first);
        self.out.push(b'}');
        Ok(at + 1)
    }

    /// Before the member `key` is written: adds `id` where it belongs here, and compares a stored `id`. Answers whether the member is
    /// to be kept: a stored `id` is not where the added one stands already.
    fn settle_id(
        &mut self,
        first: usize,
        added: &mut Added<'_>,
        is_sorted: &mut bool,
        key: &str,
        json: &[u8],
        value: usize,
    ) -> Result<bool, CanonicalError> {
        let (id, is_written) = match *added {
            Added::Done => return Ok(true),
            Added::Wanted(id) => (id, false),
            Added::Written(id) => (id, true),
        };
        match key::compare(key, "id") {
            Ordering::Less => {}
            Ordering::Equal => {
                ensure_id(json, value, id)?;
                *added = Added::Done;
                return Ok(!is_written);
            }
            Ordering::Greater if is_written => {}
            Ordering::Greater => {
                *is_sorted &= self.add_id(first, id);
                *added = Added::Written(id);
            }
        }
        Ok(true)
    }

    /// Writes a comma where one is needed, and the key; answers where the member begins.
    fn member(&mut self, first: usize, name: Found<'_>) -> Result<usize, CanonicalError> {
        if self.members.len() > first {
            self.out.push(b',');
        }
        let start = self.out.len();
        string::write(&mut self.out, name)?;
        self.out.push(b':');
        Ok(start)
    }

    /// Writes the added member `id`. Answers whether it is in order.
    fn add_id(&mut self, first: usize, id: &str) -> bool {
        if self.members.len() > first {
            self.out.push(b',');
        }
        let start = self.out.len();
        self.put(b"\"id\":\"");
        id.chars().for_each(|character| string::push_character(&mut self.out, character));
        self.out.push(b'"');
        let written = start..self.out.len();
        self.remember(first, Member { key: Cow::Borrowed("id"), written, offset: 0 })
    }

    /// Adds a member to its open object. Answers whether its key comes after the one before it.
    fn remember(&mut self, first: usize, member: Member<'a>) -> bool {
        let before = self.members.get(first..).and_then(<[_]>::last);
        let in_order = before.is_none_or(|before| key::compare(&before.key, &member.key) == Ordering::Less);
        self.members.push(member);
        in_order
    }

    /// Moves what was written for the members from `first` on into the order of their keys.
    fn sort(&mut self, first: usize) -> Result<(), CanonicalError> {
        let members = self.members.get_mut(first..).unwrap_or_default();
        let begin = members.first().map_or(self.out.len(), |member| member.written.start);
        members.sort_by(|left, right| key::compare(&left.key, &right.key));
        for pair in members.windows(2) {
            if let [left, right] = pair
                && left.key == right.key
            {
                let offset = left.offset.max(right.offset);
                return Err(CanonicalError::new(offset, CanonicalErrorKind::RepeatedKey));
            }
        }
        self.moved.clear();
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                self.moved.push(b',');
            }
            self.moved.extend_from_slice(self.out.get(member.written.clone()).unwrap_or_default());
        }
        self.out.truncate(begin);
        self.out.extend_from_slice(&self.moved);
        Ok(())
    }
}

fn name_at(json: &[u8], at: usize) -> Result<Found<'_>, CanonicalError> {
    if json.get(at) != Some(&b'"') {
        return Err(unexpected(json, at).into());
    }
    Ok(string::scan(json, at)?)
}

/// The offset of the value behind the key `name`.
fn value_after(json: &[u8], name: Found<'_>) -> Result<usize, CanonicalError> {
    let colon = scan::skip_space(json, name.start + name.raw.len() + 1);
    if json.get(colon) != Some(&b':') {
        return Err(unexpected(json, colon).into());
    }
    Ok(scan::skip_space(json, colon + 1))
}

/// Checks that the value at `at` is the text `id`.
fn ensure_id(json: &[u8], at: usize, id: &str) -> Result<(), CanonicalError> {
    let other = CanonicalError::new(at, CanonicalErrorKind::OtherId);
    if json.get(at) != Some(&b'"') {
        return Err(other);
    }
    let found = string::scan(json, at)?;
    if string::decode(found)? == id { Ok(()) } else { Err(other) }
}

const fn ensure_depth(at: usize, depth: usize) -> Result<(), CanonicalError> {
    if depth > JSON_DEPTH_MAX {
        return Err(CanonicalError::new(at, CanonicalErrorKind::Json(JsonErrorKind::TooDeep)));
    }
    Ok(())
}

fn ensure_finished(json: &[u8], end: usize) -> Result<(), CanonicalError> {
    let end = scan::skip_space(json, end);
    if end < json.len() {
        return Err(JsonError::new(end, JsonErrorKind::TrailingData).into());
    }
    Ok(())
}
