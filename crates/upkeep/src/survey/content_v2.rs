//! Reads the 2.x rows of one session, in the order of their sequence numbers.

use rusqlite::{Connection, Statement};

use super::content::{ContentV2, MessageV2, Names};
use super::facts::{Depth, RowText};
use super::payload::Payloads;
use crate::schema::Schema;

/// The statement and handle for 2.x rows.
pub(crate) struct ReaderV2<'db> {
    rows: Statement<'db>,
    data: Payloads<'db>,
}

impl<'db> ReaderV2<'db> {
    /// `None` where the file has no 2.x rows or lacks a column without which they cannot be told apart.
    pub(crate) fn new(connection: &'db Connection, schema: &Schema) -> rusqlite::Result<Option<Self>> {
        let columns = ["id", "session_id", "type", "seq", "data"];
        if !columns.iter().all(|column| schema.has("session_message", column)) {
            return Ok(None);
        }
        Ok(Some(Self {
            rows: connection.prepare(
                "SELECT rowid, id, type, octet_length(data), typeof(data) = 'text' FROM session_message \
                 WHERE session_id = ?1 ORDER BY seq",
            )?,
            data: Payloads::new(connection, "session_message"),
        }))
    }

    /// Reads the rows of `session` into `content`, which is emptied first.
    pub(crate) fn read(
        &mut self,
        session: &str,
        depth: Depth,
        names: &mut Names,
        content: &mut ContentV2,
    ) -> rusqlite::Result<()> {
        content.messages.clear();
        let mut rows = self.rows.query([session])?;
        while let Some(row) = rows.next()? {
            let rowid = row.get(0)?;
            let length = crate::survey::byte_length(row, 3)?;
            let row_type = row.get_ref(2)?.as_str().unwrap_or(Names::OTHER);
            let kind = names.index(row_type);
            let seen = if row.get(4)? {
                RowText { payloads: &mut self.data, rowid, length, depth }.message_v2(row_type)?
            } else {
                super::facts::MessageV2Seen::UNREADABLE
            };
            content.messages.push(MessageV2 {
                rowid,
                id: row.get_ref(1)?.as_str().unwrap_or_default().into(),
                length,
                kind,
                author: seen.author,
                has_unfinished_tool: seen.has_unfinished_tool,
                compaction: seen.compaction,
                technical: seen.technical,
                gains: seen.gains,
            });
        }
        Ok(())
    }

    /// Gives up every handle that holds a read transaction open.
    pub(crate) fn release(&mut self) {
        self.data.release();
    }
}
