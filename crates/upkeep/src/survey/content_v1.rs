//! Reads the 1.x rows of one session: messages in OpenCode's order, then their parts.

use std::collections::HashMap;

use headwater_prune::decide::Compaction;
use rusqlite::{Connection, Statement};

use super::content::{ContentV1, Message, Names, Part};
use super::facts::{Depth, MessageSeen, PartSeen, RowText};
use super::payload::Payloads;
use crate::schema::Schema;

/// The statements and handles for 1.x rows.
pub(crate) struct ReaderV1<'db> {
    messages: Statement<'db>,
    parts: Statement<'db>,
    message_data: Payloads<'db>,
    part_data: Payloads<'db>,
    positions: HashMap<Box<str>, u32>,
}

impl<'db> ReaderV1<'db> {
    /// `None` where the file has no 1.x rows or lacks a column without which they cannot be told apart.
    pub(crate) fn new(connection: &'db Connection, schema: &Schema) -> rusqlite::Result<Option<Self>> {
        let has = |table: &str, columns: &[&str]| columns.iter().all(|column| schema.has(table, column));
        if !has("message", &["id", "session_id", "data"])
            || !has("part", &["id", "message_id", "session_id", "data"])
        {
            return Ok(None);
        }
        let order = if schema.has("message", "time_created") { "time_created, id" } else { "id" };
        Ok(Some(Self {
            messages: connection.prepare(&format!(
                "SELECT rowid, id, octet_length(data), typeof(data) = 'text' FROM message WHERE session_id = ?1 ORDER BY {order}"
            ))?,
            parts: connection.prepare(
                "SELECT rowid, message_id, octet_length(data), typeof(data) = 'text' FROM part WHERE session_id = ?1",
            )?,
            message_data: Payloads::new(connection, "message"),
            part_data: Payloads::new(connection, "part"),
            positions: HashMap::new(),
        }))
    }

    /// Reads the rows of `session` into `content`, which is emptied first.
    pub(crate) fn read(
        &mut self,
        session: &str,
        depth: Depth,
        names: &mut Names,
        content: &mut ContentV1,
    ) -> rusqlite::Result<()> {
        content.messages.clear();
        content.parts.clear();
        self.positions.clear();
        self.read_messages(session, depth, content)?;
        self.read_parts(session, depth, names, content)
    }

    fn read_messages(
        &mut self,
        session: &str,
        depth: Depth,
        content: &mut ContentV1,
    ) -> rusqlite::Result<()> {
        let mut rows = self.messages.query([session])?;
        while let Some(row) = rows.next()? {
            let rowid = row.get(0)?;
            let length = crate::survey::byte_length(row, 2)?;
            let id: Box<str> = row.get_ref(1)?.as_str().unwrap_or_default().into();
            let seen = if row.get(3)? {
                let mut text = RowText { payloads: &mut self.message_data, rowid, length, depth };
                text.message()?
            } else {
                MessageSeen::UNREADABLE
            };
            let position = u32::try_from(content.messages.len()).unwrap_or(u32::MAX);
            self.positions.insert(id.clone(), position);
            content.messages.push(Message {
                rowid,
                id,
                length,
                author: seen.author,
                compaction: seen.compaction,
                gains: seen.gains,
            });
        }
        Ok(())
    }

    fn read_parts(
        &mut self,
        session: &str,
        depth: Depth,
        names: &mut Names,
        content: &mut ContentV1,
    ) -> rusqlite::Result<()> {
        let mut rows = self.parts.query([session])?;
        while let Some(row) = rows.next()? {
            let rowid = row.get(0)?;
            let length = crate::survey::byte_length(row, 2)?;
            let message = row.get_ref(1)?.as_str().ok().and_then(|id| self.positions.get(id).copied());
            let seen = if row.get(3)? {
                let mut text = RowText { payloads: &mut self.part_data, rowid, length, depth };
                text.part(names)?
            } else {
                PartSeen::unreadable(names)
            };
            if let (Some(message), Some(tail)) = (message, seen.compaction_tail) {
                content.messages[message as usize].compaction =
                    Compaction::Request { tail: tail.position(&self.positions) };
            }
            content.parts.push(Part {
                rowid,
                message,
                length,
                item: seen.item,
                kind: seen.kind,
                tool: seen.tool,
                gains: seen.gains,
            });
        }
        Ok(())
    }

    /// Gives up every handle that holds a read transaction open.
    pub(crate) fn release(&mut self) {
        self.message_data.release();
        self.part_data.release();
    }
}
