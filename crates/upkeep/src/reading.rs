//! What the verbs that only read share: their error, and how they take values that may be of any size and type.

use rusqlite::blob::Blob;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, MAIN_DB, Row};

use crate::open::{OpenError, OpenErrorKind};
use crate::schema::Schema;

/// Why a reading stopped. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The database cannot be opened, or changed while it was read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// SQLite finds the file damaged.
    #[error("the database is damaged")]
    Damaged(#[source] rusqlite::Error),
    /// Another process holds a lock that excludes reading.
    #[error("locked by another process")]
    Busy,
    /// No session has this id.
    #[error("no session with this id")]
    NoSuchSession,
    /// No message has this id.
    #[error("no message with this id")]
    NoSuchMessage,
    /// Writing the result failed.
    #[error("cannot write the result")]
    Output(#[source] std::io::Error),
    /// Any other error of SQLite.
    #[error("cannot read the database")]
    Sqlite(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        if OpenErrorKind::is_damage(&error) {
            return Self::Damaged(error);
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Self::Cancelled,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Sqlite(error),
        }
    }
}

/// Longest id, name or path that is taken from a row, in bytes. Ids have at most 256 characters (P2).
pub(crate) const SHORT_BYTES_MAX: usize = 4096;

/// SQL for a column that is short in every database that OpenCode wrote: NULL where it is longer or the table lacks it, so that a
/// hostile row never fills the memory.
pub(crate) fn short(schema: &Schema, table: &str, column: &str) -> String {
    if schema.has(table, column) {
        format!("CASE WHEN octet_length({column}) <= {SHORT_BYTES_MAX} THEN {column} END")
    } else {
        "NULL".to_owned()
    }
}

/// SQL for a column that may be missing.
pub(crate) fn or_null(schema: &Schema, table: &str, column: &str) -> String {
    if schema.has(table, column) { column.to_owned() } else { "NULL".to_owned() }
}

/// SQL for whether a column is there and set.
pub(crate) fn is_set(schema: &Schema, table: &str, column: &str) -> String {
    if schema.has(table, column) { format!("{column} IS NOT NULL") } else { "0".to_owned() }
}

/// A value as text, whatever its type: bytes that are not UTF-8 are replaced. `None` for NULL.
pub(crate) fn text_of(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    })
}

/// A value as an integer; `None` for anything that is not a number.
pub(crate) fn integer_of(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(number) => Some(number),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a stored real saturates, which is as good as any time"
        )]
        ValueRef::Real(number) => Some(number as i64),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

/// A length or count, which SQLite keeps signed; NULL and negative count as zero.
pub(crate) fn count_of(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(integer_of(row, index)?.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
}

/// The first `bytes_max` bytes of a text, cut at a character, and whether that is all. Reads no more than that.
pub(crate) fn text_prefix(
    connection: &Connection,
    table: &str,
    column: &str,
    rowid: i64,
    bytes_max: usize,
) -> rusqlite::Result<(String, bool)> {
    let blob = connection.blob_open(MAIN_DB, table, column, rowid, true)?;
    let bytes = read_prefix(&blob, bytes_max)?;
    let is_whole = bytes.len() == blob.len();
    Ok((cut_at_character(bytes), is_whole))
}

/// The first bytes of an open value.
pub(crate) fn read_prefix(blob: &Blob<'_>, bytes_max: usize) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = vec![0; blob.len().min(bytes_max)];
    blob.read_at_exact(&mut bytes, 0)?;
    Ok(bytes)
}

/// Bytes as text without a character cut in half at the end; other bytes that are not UTF-8 are replaced.
pub(crate) fn cut_at_character(mut bytes: Vec<u8>) -> String {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut_at_character("a数".as_bytes()[..3].to_vec()), "a");
        assert_eq!(cut_at_character(b"a\xffb".to_vec()), "a\u{fffd}b");
        assert_eq!(cut_at_character("数".as_bytes().to_vec()), "数");
    }
}
