//! A stored row as bytes: every column with its name and storage class, so that it can be put back exactly.

use std::io::{self, BufRead, Read, Write};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};

use super::hashed::Hashed;

/// What happened to the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Change {
    /// It was deleted.
    Deleted {
        /// Its table.
        table: String,
        /// Its rowid, which it gets back where it is free.
        rowid: i64,
    },
    /// Its `data` was replaced; the record holds the row with the data before.
    Rewritten {
        /// Its table.
        table: String,
        /// Its rowid.
        rowid: i64,
        /// SHA-256 of the data after, in hex: what must be stored for the row to count as unchanged since.
        after: String,
    },
}

/// The first line of a record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    change: Change,
    columns: Vec<Column>,
}

/// One value: name, storage class, bytes that follow.
#[derive(Debug, Serialize, Deserialize)]
struct Column(String, Class, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Class {
    Null,
    Integer,
    Real,
    Text,
    Blob,
}

/// Longest first line of a record in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A record read back.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) change: Change,
    pub(super) columns: Vec<Restored>,
}

/// One value read back.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) name: String,
    /// Text is here as its bytes, which need not be UTF-8; the statement that puts it back makes it text again.
    pub(super) value: Value,
    pub(super) is_text: bool,
}

/// Writes the row `rowid` of `table` as it is stored. `None` where there is no such row, and nothing is written then. Returns the
/// digest of the row.
pub(super) fn write(
    connection: &Connection,
    table: &'static str,
    rowid: i64,
    change: &Change,
    out: &mut dyn Write,
) -> rusqlite::Result<Option<io::Result<[u8; 32]>>> {
    with_row(connection, table, rowid, |names, row| {
        let mut hashed = Hashed::new(out);
        write_row(change, names, row, &mut hashed).map(|written| written.map(|()| hashed.finish().1))
    })
}

/// The digest that [`write`] returns for the same change, without writing. `None` where there is no such row.
pub(crate) fn digest(
    connection: &Connection,
    table: &'static str,
    rowid: i64,
) -> rusqlite::Result<Option<[u8; 32]>> {
    with_row(connection, table, rowid, |names, row| {
        let change = Change::Deleted { table: table.to_owned(), rowid };
        let mut hashed = Hashed::new(io::sink());
        // Neither the sink nor the hash can fail.
        let _infallible = write_row(&change, names, row, &mut hashed)?;
        Ok(hashed.finish().1)
    })
}

fn with_row<T>(
    connection: &Connection,
    table: &'static str,
    rowid: i64,
    body: impl FnOnce(&[String], &Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let mut statement = connection.prepare_cached(&format!("SELECT * FROM \"{table}\" WHERE rowid = ?1"))?;
    let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    statement.query_row([rowid], |row| body(&names, row)).optional()
}

fn write_row(
    change: &Change,
    names: &[String],
    row: &Row<'_>,
    out: &mut dyn Write,
) -> rusqlite::Result<io::Result<()>> {
    let mut values = Vec::with_capacity(names.len());
    for at in 0..names.len() {
        values.push(row.get_ref(at)?);
    }
    Ok(write_values(change, names, &values, out))
}

fn write_values(
    change: &Change,
    names: &[String],
    values: &[ValueRef<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns = names
        .iter()
        .zip(values)
        .map(|(name, value)| {
            let (class, bytes) = match value {
                ValueRef::Null => (Class::Null, 0),
                ValueRef::Integer(_) => (Class::Integer, 8),
                ValueRef::Real(_) => (Class::Real, 8),
                ValueRef::Text(bytes) => (Class::Text, bytes.len()),
                ValueRef::Blob(bytes) => (Class::Blob, bytes.len()),
            };
            Column(name.clone(), class, bytes as u64)
        })
        .collect();
    serde_json::to_writer(&mut *out, &Line { change: change.clone(), columns })?;
    out.write_all(b"\n")?;
    for value in values {
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(number) => out.write_all(&number.to_le_bytes())?,
            ValueRef::Real(number) => out.write_all(&number.to_bits().to_le_bytes())?,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => out.write_all(bytes)?,
        }
    }
    Ok(())
}

/// Reads the record whose first line is `line`; its values follow in `input`.
pub(super) fn read(line: &[u8], input: &mut dyn BufRead) -> io::Result<Record> {
    let line: Line = serde_json::from_slice(line)?;
    let mut columns = Vec::with_capacity(line.columns.len());
    for Column(name, class, bytes) in line.columns {
        let value = match class {
            Class::Null => Value::Null,
            Class::Integer => Value::Integer(i64::from_le_bytes(eight(input)?)),
            Class::Real => Value::Real(f64::from_bits(u64::from_le_bytes(eight(input)?))),
            Class::Text | Class::Blob => Value::Blob(exactly(input, bytes)?),
        };
        columns.push(Restored { name, value, is_text: class == Class::Text });
    }
    Ok(Record { change: line.change, columns })
}

/// Skips the values of the record whose first line is `line`.
pub(super) fn skip(line: &[u8], input: &mut dyn BufRead) -> io::Result<()> {
    let line: Line = serde_json::from_slice(line)?;
    for Column(_, _, bytes) in line.columns {
        let skipped = io::copy(&mut input.take(bytes), &mut io::sink())?;
        if skipped != bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Reads up to a newline, at most [`LINE_BYTES_MAX`] bytes; without the newline.
pub(super) fn read_line(input: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.pop() == Some(b'\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn eight(input: &mut dyn BufRead) -> io::Result<[u8; 8]> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Grows with what is really there: a garbled length does not make a huge allocation.
fn exactly(input: &mut dyn BufRead, bytes: u64) -> io::Result<Vec<u8>> {
    let mut value = Vec::new();
    input.take(bytes).read_to_end(&mut value)?;
    if value.len() as u64 == bytes { Ok(value) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
