//! Objects and arrays of a row as ranges of its bytes.

use std::ops::Range;
use std::rc::Rc;

use headwater_wire::json::{Kind, Reader, Text};

use crate::extents::{Ends, Extents};
use crate::row_error::{RowError, RowErrorKind};

/// A value of a row: where it stands and what it is.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    data: &'a [u8],
    extents: Rc<Extents>,
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Text<'a>,
    /// From the opening quote of the key to the end of the value.
    pub(crate) range: Range<usize>,
    pub(crate) value: Value<'a>,
}

/// The members of one object, in the order of the text, without repeated keys.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a>(pub(crate) Vec<Member<'a>>);

/// Reads `data` as one document, to its end. Looking into its values does not scan the long ones again.
pub(crate) fn document(data: &[u8]) -> Result<Value<'_>, RowError> {
    let mut reader = Reader::new(data);
    let kind = reader.peek()?;
    let start = reader.offset();
    let extents = Rc::new(Extents::scan(&mut reader)?);
    let range = start..reader.offset();
    reader.finish()?;
    Ok(Value { data, extents, kind, range })
}

impl<'a> Value<'a> {
    /// The bytes of the value.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.data.get(self.range.clone()).unwrap_or_default()
    }

    /// The members, where the value is an object.
    pub(crate) fn object(&self) -> Result<Option<Object<'a>>, RowError> {
        if self.kind != Kind::Object {
            return Ok(None);
        }
        let mut reader = Reader::at(self.data, self.range.start);
        let mut ends = self.extents.from(self.range.start + 1);
        let mut members = Vec::new();
        reader.begin_object()?;
        while let Some(key) = reader.next_member()? {
            let start = reader.entry_start();
            let value = self.inner(&mut reader, &mut ends)?;
            members.push(Member { key, range: start..value.range.end, value });
        }
        ensure_distinct(&members)?;
        Ok(Some(Object(members)))
    }

    /// The elements, where the value is an array.
    pub(crate) fn array(&self) -> Result<Option<Vec<Value<'a>>>, RowError> {
        if self.kind != Kind::Array {
            return Ok(None);
        }
        let mut reader = Reader::at(self.data, self.range.start);
        let mut ends = self.extents.from(self.range.start + 1);
        let mut elements = Vec::new();
        reader.begin_array()?;
        while reader.next_element()? {
            elements.push(self.inner(&mut reader, &mut ends)?);
        }
        Ok(Some(elements))
    }

    /// The value inside this one that comes next, with `reader` moved over it.
    fn inner(&self, reader: &mut Reader<'a>, ends: &mut Ends<'_>) -> Result<Value<'a>, RowError> {
        let kind = reader.peek()?;
        let start = reader.offset();
        let range = match ends.of(start) {
            Some(end) => reader.skip_to(end),
            None => reader.skip()?,
        };
        Ok(Value { data: self.data, extents: Rc::clone(&self.extents), kind, range })
    }

    /// The text, where the value is a string.
    pub(crate) fn text(&self) -> Result<Option<Text<'a>>, RowError> {
        if self.kind != Kind::String {
            return Ok(None);
        }
        Ok(Some(Reader::at(self.data, self.range.start).string()?))
    }

    /// Whether the value is the string `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        matches!(self.text(), Ok(Some(text)) if text.is(name))
    }

    /// Whether JavaScript takes the value as true.
    pub(crate) fn is_truthy(&self) -> bool {
        match self.kind {
            Kind::Object | Kind::Array | Kind::True => true,
            Kind::False | Kind::Null => false,
            Kind::String => self.bytes() != b"\"\"",
            Kind::Number => {
                let text = std::str::from_utf8(self.bytes()).unwrap_or_default();
                text.parse::<f64>().is_ok_and(|number| number != 0.0)
            }
        }
    }
}

impl<'a> Object<'a> {
    /// The member of this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Member<'a>> {
        self.0.iter().find(|member| member.key.is(name))
    }

    /// The value of the member of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.member(name).map(|member| &member.value)
    }

    /// The members of the object in the member of this name.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Object<'a>>, RowError> {
        self.get(name).map_or(Ok(None), Value::object)
    }

    /// The elements of the array in the member of this name.
    pub(crate) fn array(&self, name: &str) -> Result<Option<Vec<Value<'a>>>, RowError> {
        self.get(name).map_or(Ok(None), Value::array)
    }

    /// The text of the string in the member of this name.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Text<'a>>, RowError> {
        self.get(name).map_or(Ok(None), Value::text)
    }

    /// Whether the member of this name is the string `text`.
    pub(crate) fn is(&self, name: &str, text: &str) -> bool {
        self.get(name).is_some_and(|value| value.is(text))
    }
}

/// The most members that are compared pair by pair; more are sorted.
const PAIRS_MAX: usize = 16;

fn ensure_distinct(members: &[Member<'_>]) -> Result<(), RowError> {
    if members.len() <= PAIRS_MAX && members.iter().all(|member| !member.key.is_escaped()) {
        let is_repeated =
            |at: usize| members[..at].iter().any(|other| other.key.raw() == members[at].key.raw());
        if !(1..members.len()).any(is_repeated) {
            return Ok(());
        }
    }
    let mut keys = members
        .iter()
        .map(|member| match member.key.decode() {
            Ok(key) => Ok((key, member.range.start)),
            Err(_) => Err(RowError::new(member.range.start, RowErrorKind::LoneSurrogate)),
        })
        .collect::<Result<Vec<_>, _>>()?;
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(RowError::new(pair[1].1, RowErrorKind::RepeatedKey)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
