//! The stored content of one message, in either layout.

use std::ops::Range;

use headwater_model::{ByteCount, ContentRevision, MessageId, SessionId};
use headwater_prune::decide::{self, Author};
use headwater_prune::{ContentItem, KeptReason, Layout, PartFacts, PartKind, RemovedItems, Role, RowKind};
use headwater_wire::canonical;
use headwater_wire::limits::MESSAGE_BYTES_MAX;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use sha2::{Digest, Sha256};

use crate::fence::Storage;
use crate::schema::Schema;

/// A message as it is stored, read in one transaction.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) storage: Storage,
    pub(crate) author: Author,
    pub(crate) items: Vec<StoredItem>,
    pub(crate) revision: ContentRevision,
    rows: Rows,
}

/// One item of the content: a row of `part` (1.x), an element of `content` (2.x).
#[derive(Debug)]
pub(crate) struct StoredItem {
    pub(crate) kind: PartKind,
    pub(crate) tool: Option<Box<str>>,
    pub(crate) decided: decide::Item,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
enum Rows {
    Parts(Vec<PartRow>),
    Message { row: MessageRow, items: Vec<ContentItem>, array: Range<usize> },
}

/// A row of `part`.
#[derive(Debug)]
pub(crate) struct PartRow {
    pub(crate) rowid: i64,
    pub(crate) id: String,
    pub(crate) time_updated: i64,
    pub(crate) data: Vec<u8>,
}

/// A row of `session_message`.
#[derive(Debug)]
pub(crate) struct MessageRow {
    pub(crate) rowid: i64,
    pub(crate) id: String,
    pub(crate) row_type: String,
    pub(crate) data: Vec<u8>,
}

impl Content {
    /// Which tables hold `message` of `session`. Where a 2.x upgrade copied it, the 2.x row is the one that counts (fact B2).
    pub(crate) fn storage(
        connection: &Connection,
        schema: &Schema,
        session: &SessionId,
        message: &MessageId,
    ) -> rusqlite::Result<Option<Storage>> {
        let has = |sql: &str, id: &str| connection.prepare_cached(sql)?.exists([id]);
        if schema.has("session_message", "session_id") {
            let found = connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM session_message WHERE id = ?1 AND session_id = ?2)",
                )?
                .query_row([message.as_str(), session.as_str()], |row| row.get(0))?;
            if found {
                let is_v2 = schema.has("session_v2", "id")
                    && has("SELECT 1 FROM session_v2 WHERE id = ?1", session.as_str())?;
                return Ok(Some(if is_v2 { Storage::V2 } else { Storage::V2OnV1Session }));
            }
        }
        if schema.has("message", "session_id") {
            let found: bool = connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM message WHERE id = ?1 AND session_id = ?2)")?
                .query_row([message.as_str(), session.as_str()], |row| row.get(0))?;
            return Ok(found.then_some(Storage::V1));
        }
        Ok(None)
    }

    /// Reads `message`. The inner error says why nothing of it may be touched: it is gone, too large to be read here (P2), or not
    /// JSON that has one meaning (P3).
    pub(crate) fn read(
        connection: &Connection,
        storage: Storage,
        session: &SessionId,
        message: &MessageId,
    ) -> rusqlite::Result<Result<Self, KeptReason>> {
        match storage {
            Storage::V1 => Self::read_parts(connection, session, message),
            Storage::V2 | Storage::V2OnV1Session => Self::read_row(connection, storage, session, message),
        }
    }

    fn read_parts(
        connection: &Connection,
        session: &SessionId,
        message: &MessageId,
    ) -> rusqlite::Result<Result<Self, KeptReason>> {
        let sizes: Option<(i64, i64)> = connection
            .prepare_cached(
                "SELECT octet_length(data), (SELECT coalesce(sum(octet_length(data)), 0) FROM part WHERE message_id = ?1) \
                 FROM message WHERE id = ?1 AND session_id = ?2",
            )?
            .query_row([message.as_str(), session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((head_bytes, part_bytes)) = sizes else { return Ok(Err(KeptReason::Gone)) };
        if is_oversized(head_bytes.saturating_add(part_bytes)) {
            return Ok(Err(KeptReason::Oversized));
        }
        let author = connection
            .prepare_cached("SELECT data FROM message WHERE id = ?1")?
            .query_row([message.as_str()], |row| {
                Ok(text_bytes(row, 0)?.map_or(Author::Unreadable, author_of))
            })?;
        let mut statement = connection.prepare_cached(
            "SELECT rowid, id, time_updated, data, session_id = ?2 FROM part WHERE message_id = ?1 ORDER BY id",
        )?;
        let mut rows = statement.query([message.as_str(), session.as_str()])?;
        let (mut parts, mut items) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let Some(data) = text_bytes(row, 3)? else { return Ok(Err(KeptReason::Unreadable)) };
            if !row.get::<_, bool>(4)? {
                return Ok(Err(KeptReason::Unreadable));
            }
            items.push(part_item(data));
            let data = data.to_vec();
            parts.push(PartRow { rowid: row.get(0)?, id: row.get(1)?, time_updated: row.get(2)?, data });
        }
        let Ok(revision) = parts_revision(&parts) else { return Ok(Err(KeptReason::Unreadable)) };
        Ok(Ok(Self { storage: Storage::V1, author, items, revision, rows: Rows::Parts(parts) }))
    }

    fn read_row(
        connection: &Connection,
        storage: Storage,
        session: &SessionId,
        message: &MessageId,
    ) -> rusqlite::Result<Result<Self, KeptReason>> {
        let size: Option<i64> = connection
            .prepare_cached(
                "SELECT octet_length(data) FROM session_message WHERE id = ?1 AND session_id = ?2",
            )?
            .query_row([message.as_str(), session.as_str()], |row| row.get(0))
            .optional()?;
        let Some(size) = size else { return Ok(Err(KeptReason::Gone)) };
        if is_oversized(size) {
            return Ok(Err(KeptReason::Oversized));
        }
        let row = connection
            .prepare_cached("SELECT rowid, id, type, data FROM session_message WHERE id = ?1")?
            .query_row([message.as_str()], |row| {
                let Some(data) = text_bytes(row, 3)? else { return Ok(None) };
                let data = data.to_vec();
                Ok(Some(MessageRow { rowid: row.get(0)?, id: row.get(1)?, row_type: row.get(2)?, data }))
            })?;
        let Some(row) = row else { return Ok(Err(KeptReason::Unreadable)) };
        if row.row_type != "assistant" {
            return Ok(Err(KeptReason::NotCompletedAssistant));
        }
        Ok(Self::of_row(storage, row).ok_or(KeptReason::Unreadable))
    }

    fn of_row(storage: Storage, row: MessageRow) -> Option<Self> {
        let is_completed = headwater_prune::completion(&row.data, true).known()?.is_some();
        let content = headwater_prune::assistant_items(&row.data).ok()?;
        let array = headwater_prune::content_range(&row.data).ok()?;
        let revision = canonical::content_revision(row.data.get(array.clone())?).ok()?;
        let items = content
            .iter()
            .map(|item| StoredItem {
                kind: item.kind.clone(),
                tool: item.tool.clone(),
                decided: item.into(),
                bytes: item.range.len() as u64,
            })
            .collect();
        let author = Author::Assistant { is_completed };
        Some(Self { storage, author, items, revision, rows: Rows::Message { row, items: content, array } })
    }

    /// The positions that may be removed (P4).
    pub(crate) fn removable(&self) -> Result<Vec<u32>, KeptReason> {
        headwater_prune::removable(self.author, self.items.iter().map(|item| item.decided))
    }

    /// The 1.x rows behind the items; empty for 2.x.
    pub(crate) fn parts(&self) -> &[PartRow] {
        match &self.rows {
            Rows::Parts(parts) => parts,
            Rows::Message { .. } => &[],
        }
    }

    /// The layout that receipts and previews name.
    pub(crate) fn layout(&self) -> Layout {
        match self.storage {
            Storage::V1 => Layout::V1,
            Storage::V2 | Storage::V2OnV1Session => Layout::V2,
        }
    }

    /// The bytes of all items together.
    pub(crate) fn bytes(&self) -> ByteCount {
        self.items.iter().map(|item| ByteCount::new(item.bytes)).sum()
    }

    /// What the removal of the items at `indexes` (ascending, each removable) leaves and writes.
    pub(crate) fn without(&self, indexes: &[u32]) -> Result<Edit<'_>, KeptReason> {
        let allowed = self.removable()?;
        if !indexes.iter().all(|index| allowed.binary_search(index).is_ok()) {
            return Err(KeptReason::UnknownKind);
        }
        match &self.rows {
            Rows::Parts(parts) => self.without_parts(parts, indexes),
            Rows::Message { row, items, array } => self.without_items(row, items, array, indexes),
        }
    }

    fn without_parts<'c>(&self, parts: &'c [PartRow], indexes: &[u32]) -> Result<Edit<'c>, KeptReason> {
        let goes = |at: usize| u32::try_from(at).is_ok_and(|at| indexes.binary_search(&at).is_ok());
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        for (at, part) in parts.iter().enumerate() {
            if goes(at) { gone.push(part) } else { left.push(part) }
        }
        let revision =
            canonical::parts_revision(left.iter().map(|part| (part.id.as_str(), part.data.as_slice())))
                .map_err(|_| KeptReason::Unreadable)?;
        Ok(Edit {
            after: revision,
            removed: self.removed(indexes),
            bytes: gone.iter().map(|part| ByteCount::new(part.data.len() as u64)).sum(),
            guard: parts_digest(left.iter().map(|part| (part.id.as_str(), part.data.as_slice()))),
            gone: gone.iter().map(|part| part.id.clone()).collect(),
            writes: Writes::DeleteParts(gone),
        })
    }

    fn without_items<'c>(
        &self,
        row: &'c MessageRow,
        items: &[ContentItem],
        array: &Range<usize>,
        indexes: &[u32],
    ) -> Result<Edit<'c>, KeptReason> {
        let unreadable = |_| KeptReason::Unreadable;
        let data = headwater_prune::remove_items(&row.data, indexes).map_err(unreadable)?;
        headwater_prune::ensure_not_worse(RowKind::SessionMessage, Some(&row.row_type), &row.data, &data)
            .map_err(|_| KeptReason::Unreadable)?;
        let left = headwater_prune::content_range(&data).map_err(unreadable)?;
        debug_assert_eq!(left.start, array.start, "nothing before the content changes");
        let content = data.get(left).ok_or(KeptReason::Unreadable)?;
        let after = canonical::content_revision(content).map_err(|_| KeptReason::Unreadable)?;
        let gone = indexes
            .iter()
            .filter_map(|index| items.get(usize::try_from(*index).ok()?))
            .filter_map(|item| item_digest(row.data.get(item.range.clone())?))
            .collect();
        Ok(Edit {
            after,
            removed: self.removed(indexes),
            bytes: ByteCount::new((row.data.len() - data.len()) as u64),
            guard: parts_digest([(row.id.as_str(), data.as_slice())]),
            gone,
            writes: Writes::ReplaceRow { row, data },
        })
    }

    fn removed(&self, indexes: &[u32]) -> RemovedItems {
        let mut removed = RemovedItems::default();
        for item in indexes.iter().filter_map(|index| self.items.get(usize::try_from(*index).ok()?)) {
            if item.kind == PartKind::Tool { removed.tools += 1 } else { removed.reasoning += 1 }
        }
        removed
    }

    /// Whether any of `gone`, as an [`Edit`] lists it, is still there.
    pub(crate) fn has_any(&self, gone: &[String]) -> bool {
        match &self.rows {
            Rows::Parts(parts) => parts.iter().any(|part| gone.contains(&part.id)),
            Rows::Message { row, items, .. } => items
                .iter()
                .filter_map(|item| item_digest(row.data.get(item.range.clone())?))
                .any(|digest| gone.contains(&digest)),
        }
    }
}

/// A removal, ready to be written.
#[derive(Debug)]
pub(crate) struct Edit<'c> {
    /// Revision of what remains.
    pub(crate) after: ContentRevision,
    pub(crate) removed: RemovedItems,
    pub(crate) bytes: ByteCount,
    /// Digest of the stored bytes of what remains; more exact than the revision.
    pub(crate) guard: [u8; 32],
    /// Ids of parts (1.x) or digests of items (2.x).
    pub(crate) gone: Vec<String>,
    pub(crate) writes: Writes<'c>,
}

/// What is written for a removal.
#[derive(Debug)]
pub(crate) enum Writes<'c> {
    /// Rows of `part` go.
    DeleteParts(Vec<&'c PartRow>),
    /// The row of `session_message` gets other data.
    ReplaceRow { row: &'c MessageRow, data: Vec<u8> },
}

impl Writes<'_> {
    /// Writes, each row only where it is what was read: by rowid, id and exact bytes. `false` where a row is not; the caller rolls back.
    pub(crate) fn apply(&self, connection: &Connection) -> rusqlite::Result<bool> {
        match self {
            Self::DeleteParts(parts) => {
                let mut delete = connection.prepare_cached(
                    "DELETE FROM part WHERE rowid = ?1 AND id = ?2 AND time_updated = ?3 AND data = CAST(?4 AS TEXT)",
                )?;
                for part in parts {
                    if delete.execute((part.rowid, &part.id, part.time_updated, &part.data))? != 1 {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::ReplaceRow { row, data } => {
                let mut update = connection.prepare_cached(
                    "UPDATE session_message SET data = CAST(?1 AS TEXT) WHERE rowid = ?2 AND id = ?3 AND data = CAST(?4 AS TEXT)",
                )?;
                Ok(update.execute((data, row.rowid, &row.id, &row.data))? == 1)
            }
        }
    }
}

/// SHA-256 over the ids and stored bytes of rows, in id order.
pub(crate) fn parts_digest<'p>(rows: impl IntoIterator<Item = (&'p str, &'p [u8])>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (id, data) in rows {
        for bytes in [id.as_bytes(), data] {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
    hash.finalize().into()
}

/// The digest that [`Edit::guard`] has for what is stored of `message`; `None` where it is gone.
pub(crate) fn stored_digest(
    connection: &Connection,
    storage: Storage,
    message: &str,
) -> rusqlite::Result<Option<[u8; 32]>> {
    let (exists, sql) = match storage {
        Storage::V1 => (
            "SELECT 1 FROM message WHERE id = ?1",
            "SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id",
        ),
        Storage::V2 | Storage::V2OnV1Session => (
            "SELECT 1 FROM session_message WHERE id = ?1",
            "SELECT id, data FROM session_message WHERE id = ?1",
        ),
    };
    if !connection.prepare_cached(exists)?.exists([message])? {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([message])?;
    while let Some(row) = rows.next()? {
        for at in [0, 1] {
            let bytes = text_bytes(row, at)?.unwrap_or_default();
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
    Ok(Some(hash.finalize().into()))
}

fn parts_revision(parts: &[PartRow]) -> Result<ContentRevision, canonical::CanonicalError> {
    canonical::parts_revision(parts.iter().map(|part| (part.id.as_str(), part.data.as_slice())))
}

fn part_item(data: &[u8]) -> StoredItem {
    let bytes = data.len() as u64;
    match headwater_prune::part_facts(data, true).known() {
        Some(facts) => {
            let decided = decide::Item::from(&facts);
            let PartFacts { kind, tool, .. } = facts;
            StoredItem { kind, tool, decided, bytes }
        }
        None => StoredItem {
            kind: PartKind::Unknown("".into()),
            tool: None,
            decided: decide::Item::Unreadable,
            bytes,
        },
    }
}

fn author_of(data: &[u8]) -> Author {
    match headwater_prune::message_facts(data, true).known() {
        Some(facts) => match facts.role {
            Role::User => Author::User,
            Role::Assistant => Author::Assistant { is_completed: facts.completed.is_some() },
            Role::Unknown => Author::Other,
        },
        None => Author::Unreadable,
    }
}

fn item_digest(item: &[u8]) -> Option<String> {
    canonical::content_revision(item).ok().map(|digest| digest.to_string())
}

/// The bytes of a text value; `None` for every other storage class.
pub(crate) fn text_bytes<'r>(row: &'r Row<'_>, at: usize) -> rusqlite::Result<Option<&'r [u8]>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(bytes) => Some(bytes),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

fn is_oversized(bytes: i64) -> bool {
    usize::try_from(bytes).is_ok_and(|bytes| bytes > MESSAGE_BYTES_MAX)
}
