//! Writing a row with one value of many MiB in pieces.
//!
//! SQLite writes a value in pieces only where the row was made with a blob of zeros at its end. So a row goes in with a blob of zeros in
//! place of the large value *and of everything behind it*, with stand-ins of no bytes behind it; the bytes are written into that blob;
//! and at last, when no connection has the file open, the head of the row in its page gets the types that the row really has (file
//! format, 2.1 "record format"). What comes out is compared with what was read like any other row.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use crate::rebuild::connect;
use crate::rebuild::error::{Doing, RebuildErrorKind};
use crate::rebuild::rows::Cell;
use crate::rebuild::shape::TableShape;

/// The most bytes that the head of a patched row may have. So many bytes of any row are on its leaf page, whatever the page size
/// (file format, 1.6: at least 35 with the smallest usable page).
const HEAD_BYTES_MAX: usize = 35;

/// How a row with one large cell is written first.
#[derive(Debug, PartialEq)]
pub(crate) struct Placeholder {
    /// The large column.
    pub(crate) column: usize,
    /// Its bytes.
    pub(crate) length: usize,
    /// The bytes of the cells behind it.
    pub(crate) tail: Vec<u8>,
    /// The types that the row has in the end, from `column` on.
    pub(crate) head: Vec<u8>,
    /// Whether the stand-in for each cell behind it is empty text instead of the integer 0; both have no bytes of their own.
    is_text: Vec<bool>,
}

/// A row whose head must be patched.
#[derive(Debug)]
pub(crate) struct LargeRow {
    pub(crate) table: usize,
    pub(crate) rowid: i64,
    pub(crate) column: usize,
    pub(crate) head: Vec<u8>,
}

impl Placeholder {
    /// How to write `cells` into a table of `shape`; none where the head could change its length.
    pub(crate) fn of(shape: &TableShape, cells: &[Cell<'_>]) -> Option<Self> {
        let column = cells.iter().position(|cell| matches!(cell, Cell::Large { .. }))?;
        let Cell::Large { is_text, length } = cells[column] else { return None };
        if shape.has_generated || shape.alias.is_some_and(|alias| alias > column) {
            return None;
        }
        let mut tail = Vec::new();
        let mut head = varint(length.checked_mul(2)?.checked_add(if is_text { 13 } else { 12 })?);
        let own_length = head.len();
        for cell in &cells[column + 1..] {
            head.push(tail_cell(*cell, &mut tail)?);
        }
        let zeros = length.checked_add(tail.len() as u64)?;
        if varint(zeros.checked_mul(2)?.checked_add(12)?).len() != own_length {
            return None;
        }
        let before: usize = cells[..column].iter().map(type_bytes).sum();
        if 1 + before + head.len() > HEAD_BYTES_MAX {
            return None;
        }
        let is_text = shape.types[column + 1..].iter().map(|declared| has_text_affinity(declared)).collect();
        Some(Self { column, length: usize::try_from(length).ok()?, tail, head, is_text })
    }

    /// The values of the row as it is written first.
    pub(crate) fn values<'a>(&self, cells: &[Cell<'a>]) -> Vec<StandIn<'a>> {
        let zeros = self.length + self.tail.len();
        let before = cells[..self.column].iter().map(|cell| match *cell {
            Cell::Value(value) => StandIn::Value(value),
            Cell::Large { .. } => StandIn::Zeros(0),
        });
        let behind = self
            .is_text
            .iter()
            .map(|is_text| StandIn::Value(if *is_text { ValueRef::Text(b"") } else { ValueRef::Integer(0) }));
        before.chain([StandIn::Zeros(zeros)]).chain(behind).collect()
    }
}

/// A value of the row as it is written first.
pub(crate) enum StandIn<'a> {
    /// As it is.
    Value(ValueRef<'a>),
    /// A blob of so many zeros.
    Zeros(usize),
}

impl ToSql for StandIn<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Value(value) => ToSqlOutput::Borrowed(*value),
            Self::Zeros(length) => ToSqlOutput::ZeroBlob(
                i32::try_from(*length)
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?,
            ),
        })
    }
}

/// Bytes that the type of a cell takes in the head.
fn type_bytes(cell: &Cell<'_>) -> usize {
    match *cell {
        Cell::Value(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
            varint(bytes.len() as u64 * 2 + 13).len()
        }
        Cell::Value(_) => 1,
        Cell::Large { length, .. } => varint(length * 2 + 13).len(),
    }
}

/// Appends the bytes of a small cell and gives its type, where that takes one byte.
fn tail_cell(cell: Cell<'_>, tail: &mut Vec<u8>) -> Option<u8> {
    let sized = |bytes: &[u8], base: usize, tail: &mut Vec<u8>| {
        let kind = u8::try_from(bytes.len() * 2 + base).ok().filter(|kind| *kind < 128)?;
        tail.extend_from_slice(bytes);
        Some(kind)
    };
    match cell {
        Cell::Value(ValueRef::Null) => Some(0),
        Cell::Value(ValueRef::Integer(value)) => Some(tail_integer(value, tail)),
        Cell::Value(ValueRef::Real(value)) => {
            tail.extend_from_slice(&value.to_be_bytes());
            Some(7)
        }
        Cell::Value(ValueRef::Text(bytes)) => sized(bytes, 13, tail),
        Cell::Value(ValueRef::Blob(bytes)) => sized(bytes, 12, tail),
        Cell::Large { .. } => None,
    }
}

fn tail_integer(value: i64, tail: &mut Vec<u8>) -> u8 {
    let (kind, length) = match value {
        0 => (8, 0),
        1 => (9, 0),
        -0x80..=0x7F => (1, 1),
        -0x8000..=0x7FFF => (2, 2),
        -0x80_0000..=0x7F_FFFF => (3, 3),
        -0x8000_0000..=0x7FFF_FFFF => (4, 4),
        -0x8000_0000_0000..=0x7FFF_FFFF_FFFF => (5, 6),
        _ => (6, 8),
    };
    tail.extend_from_slice(&value.to_be_bytes()[8 - length..]);
    kind
}

/// Datatypes In SQLite, 3.1: INT wins over CHAR, CLOB and TEXT.
fn has_text_affinity(declared: &str) -> bool {
    let declared = declared.to_ascii_uppercase();
    !declared.contains("INT") && ["CHAR", "CLOB", "TEXT"].iter().any(|word| declared.contains(word))
}

/// File format, 1.6 "varint": seven bits a byte, most significant first. Values of large rows have less than 56 bits.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![(value & 0x7F) as u8];
    while value > 0x7F {
        value >>= 7;
        bytes.push((value & 0x7F) as u8 | 0x80);
    }
    bytes.reverse();
    bytes
}

/// Gives the rows in `large` their types. No connection may have the file open.
pub(crate) fn patch(path: &Path, shapes: &[TableShape], large: &[LargeRow]) -> Result<(), RebuildErrorKind> {
    let (page_bytes, roots) = layout(path, shapes).doing("looking for large rows")?;
    let file = File::options().read(true).write(true).open(path).doing("opening the new file")?;
    let pages = Pages { file, page_bytes };
    for row in large {
        let root = roots.get(row.table).copied().unwrap_or_default();
        pages.patch(root, row).doing("writing the head of a large row")?.ok_or_else(|| {
            RebuildErrorKind::Verification("a large row is not where it was written".into())
        })?;
    }
    Ok(())
}

fn layout(path: &Path, shapes: &[TableShape]) -> rusqlite::Result<(usize, Vec<u32>)> {
    let db: Connection = connect::resting(path)?;
    let page_bytes: u32 = db.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let mut roots = Vec::new();
    for shape in shapes {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        roots.push(db.query_row(sql, [&shape.name], |row| row.get(0))?);
    }
    Ok((page_bytes as usize, roots))
}

/// The pages of a database file that no connection has open.
struct Pages {
    file: File,
    page_bytes: usize,
}

impl Pages {
    /// Writes the types of `row` into its head; nothing where the pages are not as expected.
    fn patch(&self, root: u32, row: &LargeRow) -> std::io::Result<Option<()>> {
        let Some((number, page)) = self.leaf(root, row.rowid)? else { return Ok(None) };
        let Some(at) = types_of_row(&page, header_offset(number), row) else { return Ok(None) };
        self.file.write_all_at(&row.head, self.offset(number) + at as u64)?;
        Ok(Some(()))
    }

    fn offset(&self, number: u32) -> u64 {
        u64::from(number - 1) * self.page_bytes as u64
    }

    /// The leaf page of a table where `rowid` belongs.
    fn leaf(&self, root: u32, rowid: i64) -> std::io::Result<Option<(u32, Vec<u8>)>> {
        let mut number = root;
        // A b-tree of 2^31 pages is far less deep than this.
        for _ in 0..32 {
            if number == 0 {
                return Ok(None);
            }
            let mut page = vec![0; self.page_bytes];
            self.file.read_exact_at(&mut page, self.offset(number))?;
            let start = header_offset(number);
            match page.get(start) {
                Some(0x0D) => return Ok(Some((number, page))),
                Some(0x05) => match child(&page, start, rowid) {
                    Some(next) => number = next,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// Page 1 begins with the header of the file.
fn header_offset(number: u32) -> usize {
    if number == 1 { 100 } else { 0 }
}

fn two_bytes(page: &[u8], at: usize) -> Option<usize> {
    page.get(at..at + 2).map(|bytes| usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
}

fn four_bytes(page: &[u8], at: usize) -> Option<u32> {
    page.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
}

/// The value of the varint at `at` and the offset behind it.
fn read_varint(page: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for index in 0..9 {
        let byte = *page.get(at + index)?;
        if index == 8 {
            return Some((value << 8 | u64::from(byte), at + 9));
        }
        value = value << 7 | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            return Some((value, at + index + 1));
        }
    }
    None
}

/// The page below an interior page of a table that holds `rowid`.
fn child(page: &[u8], start: usize, rowid: i64) -> Option<u32> {
    for index in 0..two_bytes(page, start + 3)? {
        let cell = two_bytes(page, start + 12 + index * 2)?;
        let (key, _) = read_varint(page, cell + 4)?;
        if rowid <= key.cast_signed() {
            return four_bytes(page, cell);
        }
    }
    four_bytes(page, start + 8)
}

/// Where in the page the types of `row` stand, from its large column on.
fn types_of_row(page: &[u8], start: usize, row: &LargeRow) -> Option<usize> {
    for index in 0..two_bytes(page, start + 3)? {
        let cell = two_bytes(page, start + 8 + index * 2)?;
        let (_, at) = read_varint(page, cell)?;
        let (key, record) = read_varint(page, at)?;
        if key.cast_signed() != row.rowid {
            continue;
        }
        let (head_bytes, mut at) = read_varint(page, record)?;
        let end = record.checked_add(usize::try_from(head_bytes).ok()?)?;
        for _ in 0..row.column {
            at = read_varint(page, at)?.1;
        }
        // The stand-in is a blob, and what is written has the length of what is there.
        let (kind, _) = read_varint(page, at)?;
        let is_expected =
            kind >= 12 && kind % 2 == 0 && at + row.head.len() == end && end <= record + HEAD_BYTES_MAX;
        return is_expected.then_some(at);
    }
    None
}
