//! Reads the beginning of a `data` column, or all of it where that is allowed.

use rusqlite::blob::Blob;
use rusqlite::{Connection, ErrorCode, MAIN_DB};

/// First bytes of a row that are looked at. They lie on the leaf page whatever the length of the row.
const PREFIX_BYTES: usize = 320;

/// Rows up to this length lie whole on one page of 4 KiB together with their other columns, so that reading them costs no more than
/// reading their beginning.
pub(crate) const ON_LEAF_BYTES: u64 = 3_800;

/// Largest row that is read whole where payloads may be read: what an online prune may rewrite (P2), and with its rewritten copy within
/// the memory that any command may use. The figures of a larger row stay upper bounds.
pub(crate) const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// How much of a row a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The beginning.
    Prefix,
    /// At least this many bytes, or all where the row has less.
    AtLeast(usize),
}

/// The `data` column of one table, read through one handle that moves from row to row. Rows are named by rowid.
pub(crate) struct Payloads<'db> {
    connection: &'db Connection,
    table: &'static str,
    blob: Option<Blob<'db>>,
    buffer: Vec<u8>,
}

impl<'db> Payloads<'db> {
    pub(crate) fn new(connection: &'db Connection, table: &'static str) -> Self {
        Self { connection, table, blob: None, buffer: Vec::new() }
    }

    /// Reads the beginning of the row `rowid`, whose `data` is text of `length` bytes. Says whether it is the whole row.
    pub(crate) fn read(&mut self, rowid: i64, length: u64, want: Want) -> rusqlite::Result<(&[u8], bool)> {
        let bytes = match want {
            Want::Prefix => PREFIX_BYTES,
            Want::AtLeast(bytes) => bytes,
        };
        self.seek(rowid)?;
        let data = self.begin(bytes)?;
        let is_whole = data.len() as u64 == length;
        Ok((data, is_whole))
    }

    /// Reads the whole row. The caller has compared `length` with what it may use.
    pub(crate) fn whole(&mut self, rowid: i64, length: u64) -> rusqlite::Result<&[u8]> {
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        self.read(rowid, length, Want::AtLeast(bytes)).map(|(data, _)| data)
    }

    /// Moves to the row `rowid` and says how many bytes its `data` has, `None` where that is neither text nor a blob. The handle knows
    /// the length without reading the payload, so that a caller who found the rowid in an index needs no statement on the table.
    pub(crate) fn length(&mut self, rowid: i64) -> rusqlite::Result<Option<u64>> {
        match self.seek(rowid) {
            Ok(()) => Ok(self.blob.as_ref().map(|blob| blob.len() as u64)),
            // NULL or a number: SQLite has no handle for those.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first bytes, at most `bytes`, of the row that [`Payloads::length`] moved to.
    pub(crate) fn begin(&mut self, bytes: usize) -> rusqlite::Result<&[u8]> {
        let Some(blob) = &self.blob else { return Ok(&[]) };
        let bytes = blob.len().min(bytes);
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        blob.read_at_exact(&mut self.buffer[..bytes], 0)?;
        Ok(&self.buffer[..bytes])
    }

    fn seek(&mut self, rowid: i64) -> rusqlite::Result<()> {
        if let Some(blob) = &mut self.blob {
            let moved = blob.reopen(rowid);
            if moved.is_err() {
                // A handle that failed to move is of no use any more.
                self.blob = None;
            }
            return moved;
        }
        self.blob = Some(self.connection.blob_open(MAIN_DB, self.table, "data", rowid, true)?);
        Ok(())
    }

    /// Gives up the handle, so that no read transaction is held by it, and the memory of a large row.
    pub(crate) fn release(&mut self) {
        self.blob = None;
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
    }
}
