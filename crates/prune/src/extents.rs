//! Where the long values of a document end, noted in the one pass that checks it.
//!
//! A row is looked at level by level (row, content, item, state, metadata), and each level has to get over the values that it holds.
//! With their ends known, a row of any size is scanned once, whatever the number of levels.

use headwater_wire::json::{Kind, Reader};

use crate::row_error::RowError;

/// Shortest value whose end is noted. What is shorter is scanned again in less time than its note is found.
const NOTED_BYTES_MIN: usize = 512;

/// Levels below which nothing is noted. No rule looks deeper, and memory stays a fraction of the row: at most
/// `NOTED_DEPTH * 16 / NOTED_BYTES_MIN` bytes per byte.
const NOTED_DEPTH: usize = 8;

/// Start and end of each long value, in the order of their starts. A container comes before what it holds.
#[derive(Debug, Default)]
pub(crate) struct Extents(Vec<(usize, usize)>);

impl Extents {
    /// Moves `reader` over the value that comes next, checks it, and notes what is long in it.
    pub(crate) fn scan(reader: &mut Reader<'_>) -> Result<Self, RowError> {
        let mut extents = Self::default();
        let mut open = Vec::new();
        extents.value(reader, &mut open)?;
        while let Some(container) = open.last() {
            let has_more = match container.kind {
                Kind::Object => reader.next_member()?.is_some(),
                Kind::Array | Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => {
                    reader.next_element()?
                }
            };
            if has_more {
                extents.value(reader, &mut open)?;
            } else if let Some(container) = open.pop() {
                extents.close(&container, reader.offset());
            }
        }
        Ok(extents)
    }

    /// Enters the container or moves over the scalar that comes next.
    fn value(&mut self, reader: &mut Reader<'_>, open: &mut Vec<Open>) -> Result<(), RowError> {
        let kind = reader.peek()?;
        let start = reader.offset();
        let is_noted = open.len() < NOTED_DEPTH;
        match kind {
            Kind::Object => reader.begin_object()?,
            Kind::Array => reader.begin_array()?,
            Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => {
                let range = reader.skip()?;
                if is_noted && range.len() >= NOTED_BYTES_MIN {
                    self.0.push((range.start, range.end));
                }
                return Ok(());
            }
        }
        let note = is_noted.then_some(self.0.len());
        if is_noted {
            self.0.push((start, start));
        }
        open.push(Open { kind, note });
        Ok(())
    }

    fn close(&mut self, container: &Open, end: usize) {
        let Some((index, note)) = container.note.and_then(|at| self.0.get_mut(at).map(|note| (at, note)))
        else {
            return;
        };
        note.1 = end;
        if end - note.0 < NOTED_BYTES_MIN {
            // Whatever it holds is shorter still and has no note.
            self.0.truncate(index);
        }
    }

    /// The notes of values that begin at `offset` or behind it.
    pub(crate) fn from(&self, offset: usize) -> Ends<'_> {
        Ends(self.0.get(self.0.partition_point(|note| note.0 < offset)..).unwrap_or_default())
    }
}

/// A container that the scan is in.
struct Open {
    kind: Kind,
    /// Where its note stands.
    note: Option<usize>,
}

/// The notes ahead of a reader that moves forward.
pub(crate) struct Ends<'a>(&'a [(usize, usize)]);

impl Ends<'_> {
    /// The end of the value that begins at `start`, where it is noted. Starts are asked for in ascending order.
    pub(crate) fn of(&mut self, start: usize) -> Option<usize> {
        while let Some((note, rest)) = self.0.split_first() {
            if note.0 > start {
                return None;
            }
            self.0 = rest;
            if note.0 == start {
                return Some(note.1);
            }
        }
        None
    }
}
