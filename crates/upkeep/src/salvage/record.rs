//! Decodes cells of table leaves and their records (sqlite.org/fileformat2.html, sections 1.6 and 2.1). Every number is checked: the
//! bytes may be anything.

use rusqlite::types::ValueRef;

/// The place of a row in a leaf page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) rowid: i64,
    /// Bytes of the record.
    pub(super) payload_bytes: u64,
    /// Where its local part begins in the page, and how long it is.
    pub(super) start: usize,
    pub(super) local_bytes: usize,
}

/// The cells of a page, none where it is not a table leaf.
pub(super) fn cells(page: &[u8], usable_bytes: usize) -> Vec<Cell> {
    let Some(&[13, _, _, high, low, ..]) = page.get(..8) else { return Vec::new() };
    let count = usize::from(u16::from_be_bytes([high, low]));
    (0..count).filter_map(|at| cell(page, usable_bytes, 8 + 2 * at)).collect()
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
pub(super) fn values(record: &[u8]) -> Option<Vec<ValueRef<'_>>> {
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
