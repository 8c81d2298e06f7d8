//! Decodes pages of tables and their records (sqlite.org/fileformat2.html, sections 1.6 and 2.1). Every number is checked: the bytes may
//! be anything.

use rusqlite::types::ValueRef;

/// The place of a row in a leaf page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) rowid: i64,
    /// Bytes of the record.
    pub(crate) payload_bytes: u64,
    /// Where its local part begins in the page, and how long it is.
    pub(crate) start: usize,
    pub(crate) local_bytes: usize,
}

/// First byte of a leaf of a table.
pub(super) const LEAF: u8 = 13;

/// First byte of an interior page of a table.
pub(super) const INTERIOR: u8 = 5;

/// The cells of a page, none where it is not a table leaf. Those that cannot be are left out.
pub(crate) fn cells(page: &[u8], usable_bytes: usize) -> Vec<Cell> {
    if page.first() != Some(&LEAF) {
        return Vec::new();
    }
    (0..cell_count(page)).filter_map(|at| cell(page, usable_bytes, 8 + 2 * at)).collect()
}

/// How many cells a page of a table says it has.
pub(super) fn cell_count(page: &[u8]) -> usize {
    page.get(3..5).map_or(0, |count| usize::from(u16::from_be_bytes([count[0], count[1]])))
}

/// The children of an interior page that may hold rowids in `first..=last`, ascending; `None` where it is not one.
pub(super) fn children(page: &[u8], usable_bytes: usize, (first, last): (i64, i64)) -> Option<Vec<u32>> {
    const CELLS_AT: usize = 12;
    let mut children = Vec::new();
    for at in 0..cell_count(page) {
        let pointer = page.get(CELLS_AT + 2 * at..)?.first_chunk()?;
        let cell = page.get(usize::from(u16::from_be_bytes(*pointer))..usable_bytes)?;
        let (child, key) = cell.split_first_chunk()?;
        // The child holds rowids up to the key, the next one those beyond.
        let key = varint(key)?.0.cast_signed();
        if key >= first {
            children.push(u32::from_be_bytes(*child));
        }
        if key >= last {
            return Some(children);
        }
    }
    children.push(u32::from_be_bytes(*page.get(8..)?.first_chunk()?));
    Some(children)
}

/// Where a text or blob stands in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnPlace {
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// The place of the column at `position`, from the first bytes of a record; `None` where it is neither text nor a blob, or the header
/// does not stand in these bytes.
pub(super) fn column(record: &[u8], position: usize) -> Option<ColumnPlace> {
    let (header_bytes, mut at) = varint(record)?;
    let header = record.get(..usize::try_from(header_bytes).ok()?)?;
    let mut start = header_bytes;
    for _ in 0..position {
        let (serial, length) = varint(header.get(at..)?)?;
        at += length;
        start = start.checked_add(stored_bytes(serial)?)?;
    }
    let (serial, _) = varint(header.get(at..)?)?;
    (serial >= 12).then_some(())?;
    Some(ColumnPlace { start, bytes: stored_bytes(serial)? })
}

/// Bytes of a value of that serial type.
fn stored_bytes(serial: u64) -> Option<u64> {
    match serial {
        0 | 8 | 9 => Some(0),
        1..=4 => Some(serial),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => Some((serial - 12) / 2),
    }
}

fn cell(page: &[u8], usable_bytes: usize, pointer_at: usize) -> Option<Cell> {
    let pointer = page.get(pointer_at..pointer_at + 2)?;
    let at = usize::from(u16::from_be_bytes([pointer[0], pointer[1]]));
    let (payload_bytes, length) = varint(page.get(at..)?)?;
    let (rowid, more) = varint(page.get(at + length..)?)?;
    let start = at + length + more;
    let local_bytes = local_bytes(payload_bytes, usable_bytes)?;
    let end = start.checked_add(local_bytes)?.checked_add(if payload_bytes > local_bytes as u64 {
        4
    } else {
        0
    })?;
    (end <= usable_bytes).then_some(Cell { rowid: rowid.cast_signed(), payload_bytes, start, local_bytes })
}

/// How much of a record of `payload_bytes` stands in the leaf itself.
fn local_bytes(payload_bytes: u64, usable_bytes: usize) -> Option<usize> {
    let usable = u64::try_from(usable_bytes).ok()?;
    let longest = usable.checked_sub(35)?;
    if payload_bytes <= longest {
        return usize::try_from(payload_bytes).ok();
    }
    let shortest = (usable - 12) * 32 / 255 - 23;
    let fitting = shortest + (payload_bytes - shortest) % (usable - 4);
    usize::try_from(if fitting <= longest { fitting } else { shortest }).ok()
}

/// A variable-length integer and its length.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        if at == 8 {
            return Some((value << 8 | u64::from(*byte), 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// The values of a record; `None` where it is not one.
pub(crate) fn values(record: &[u8]) -> Option<Vec<ValueRef<'_>>> {
    let (header_bytes, mut at) = varint(record)?;
    let header_bytes = usize::try_from(header_bytes).ok()?;
    let header = record.get(..header_bytes)?;
    let mut body = record.get(header_bytes..)?;
    let mut values = Vec::new();
    while at < header_bytes {
        let (serial, length) = varint(&header[at..])?;
        at += length;
        let (value, rest) = value(serial, body)?;
        values.push(value);
        body = rest;
    }
    (at == header_bytes && body.is_empty()).then_some(values)
}

fn value(serial: u64, body: &[u8]) -> Option<(ValueRef<'_>, &[u8])> {
    let integer = |bytes: usize| {
        let (number, rest) = body.split_at_checked(bytes)?;
        let sign = if number[0] & 0x80 == 0 { 0 } else { -1 };
        let number = number.iter().fold(sign, |value: i64, byte| value << 8 | i64::from(*byte));
        Some((ValueRef::Integer(number), rest))
    };
    match serial {
        0 => Some((ValueRef::Null, body)),
        1..=4 => integer(usize::try_from(serial).ok()?),
        5 => integer(6),
        6 => integer(8),
        7 => {
            let (number, rest) = body.split_first_chunk()?;
            Some((ValueRef::Real(f64::from_be_bytes(*number)), rest))
        }
        8 | 9 => Some((ValueRef::Integer(i64::from(serial == 9)), body)),
        10 | 11 => None,
        _ => {
            let (bytes, rest) = body.split_at_checked(usize::try_from((serial - 12) / 2).ok()?)?;
            Some((if serial.is_multiple_of(2) { ValueRef::Blob(bytes) } else { ValueRef::Text(bytes) }, rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_are_decoded_by_serial_type() {
        let record =
            [8, 0, 1, 2, 9, 7, 15, 16, 0xff, 0x01, 0x00, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, b'a', 0xfe, 0xfd];
        let expected = [
            ValueRef::Null,
            ValueRef::Integer(-1),
            ValueRef::Integer(256),
            ValueRef::Integer(1),
            ValueRef::Real(1.0),
            ValueRef::Text(b"a"),
            ValueRef::Blob(&[0xfe, 0xfd]),
        ];
        assert_eq!(values(&record).unwrap(), expected);
        assert_eq!(values(&record[..record.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(page in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut page = page;
            if let Some(first) = page.first_mut() {
                *first = 13;
            }
            let usable = page.len().max(480);
            for cell in cells(&page, usable) {
                prop_assert!(cell.start + cell.local_bytes <= usable);
            }
            let _values = values(&page);
        }
    }
}
