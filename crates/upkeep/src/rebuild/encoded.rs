//! Rows as bytes: how they pass from the reading to the writing thread, and what their digest is taken of.

use rusqlite::types::ValueRef;
use xxhash_rust::xxh3::Xxh3;

use crate::rebuild::rows::Cell;

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;
/// Added to the tag of a value whose bytes follow elsewhere.
const LARGE: u8 = 0x10;

/// Appends a row: the rowid, or zero where the table has none, then each cell. The digest of a table is that of all these bytes, with the chunks of
/// large cells after their row.
pub(crate) fn encode(rowid: Option<i64>, cells: &[Cell<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(&rowid.unwrap_or(0).to_le_bytes());
    for cell in cells {
        match *cell {
            Cell::Value(ValueRef::Null) => out.push(NULL),
            Cell::Value(ValueRef::Integer(value)) => {
                out.push(INTEGER);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Cell::Value(ValueRef::Real(value)) => {
                out.push(REAL);
                out.extend_from_slice(&value.to_bits().to_le_bytes());
            }
            Cell::Value(ValueRef::Text(bytes)) => sized(TEXT, bytes, out),
            Cell::Value(ValueRef::Blob(bytes)) => sized(BLOB, bytes, out),
            Cell::Large { is_text, length } => {
                out.push(LARGE + if is_text { TEXT } else { BLOB });
                out.extend_from_slice(&length.to_le_bytes());
            }
        }
    }
}

fn sized(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes rows apart again, in order.
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The rowid of the next row.
    pub(crate) fn rowid(&mut self) -> Option<i64> {
        self.eight().map(i64::from_le_bytes)
    }

    /// The next cell of the row.
    pub(crate) fn cell(&mut self) -> Option<Cell<'a>> {
        let (&tag, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match tag {
            NULL => Cell::Value(ValueRef::Null),
            INTEGER => Cell::Value(ValueRef::Integer(i64::from_le_bytes(self.eight()?))),
            REAL => Cell::Value(ValueRef::Real(f64::from_bits(u64::from_le_bytes(self.eight()?)))),
            TEXT => Cell::Value(ValueRef::Text(self.sized()?)),
            BLOB => Cell::Value(ValueRef::Blob(self.sized()?)),
            large => {
                Cell::Large { is_text: large == LARGE + TEXT, length: u64::from_le_bytes(self.eight()?) }
            }
        })
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(u64::from_le_bytes(self.eight()?)).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

/// The digest of a table's rows, with their number. Two tables with equal digests hold the same rows, rowids, types and bytes, in the
/// same order (xxh3, 128 bits: against accidents, not against an attacker).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) rows: u64,
    hash: u128,
}

/// Takes a [`Digest`].
#[derive(Clone, Default)]
pub(crate) struct Digester {
    rows: u64,
    hash: Xxh3,
}

impl Digester {
    /// Adds the encoded bytes of `rows` rows.
    pub(crate) fn add(&mut self, rows: u64, encoded: &[u8]) {
        self.rows += rows;
        self.hash.update(encoded);
    }

    pub(crate) fn finish(&self) -> Digest {
        Digest { rows: self.rows, hash: self.hash.digest128() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_cell_reads_back_as_written() {
        let cells = [
            Cell::Value(ValueRef::Null),
            Cell::Value(ValueRef::Integer(i64::MIN)),
            Cell::Value(ValueRef::Real(-0.0)),
            Cell::Value(ValueRef::Text(b"\xff not utf-8")),
            Cell::Value(ValueRef::Blob(b"")),
            Cell::Large { is_text: true, length: 1 << 40 },
            Cell::Large { is_text: false, length: 9 },
        ];
        let mut bytes = Vec::new();
        encode(Some(-7), &cells, &mut bytes);
        let mut decoder = Decoder::new(&bytes);
        assert_eq!(decoder.rowid(), Some(-7));
        for cell in cells {
            assert_eq!(decoder.cell(), Some(cell));
        }
        assert_eq!(decoder.cell(), None);
        assert_eq!(decoder.rowid(), None);
    }

    #[test]
    fn text_and_blob_of_the_same_bytes_have_different_digests() {
        let digest = |value| {
            let mut bytes = Vec::new();
            encode(None, &[Cell::Value(value)], &mut bytes);
            let mut digester = Digester::default();
            digester.add(1, &bytes);
            digester.finish()
        };
        assert_ne!(digest(ValueRef::Text(b"a")), digest(ValueRef::Blob(b"a")));
        assert_eq!(digest(ValueRef::Text(b"a")), digest(ValueRef::Text(b"a")));
    }
}
