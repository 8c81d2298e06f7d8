//! The items of a message, and which of them may go (P4).

use std::ops::Range;

use crate::decide::{self, Author};
use crate::edit::Edits;
use crate::facts::{PartFacts, PartKind, ToolStatus};
use crate::kept::KeptReason;
use crate::object::{Object, Value, document};
use crate::row_error::{RowError, RowErrorKind};

/// An element of the `content` array of a 2.x assistant row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentItem {
    /// Position in the array.
    pub index: u32,
    /// Its kind: text, reasoning, tool or unknown.
    pub kind: PartKind,
    /// The name of the tool; `None` for other kinds.
    pub tool: Option<Box<str>>,
    /// The status of the call; `None` for other kinds and where a tool has none.
    pub status: Option<ToolStatus>,
    /// Where it stands in the row's `data`.
    pub range: Range<usize>,
}

/// The items of a 2.x assistant row. The whole of `data` is scanned.
///
/// # Errors
/// [`RowError`] where `data` is not JSON, has no content array, or repeats a key in an object that is looked at.
pub fn assistant_items(data: &[u8]) -> Result<Vec<ContentItem>, RowError> {
    content(data)?.1.iter().zip(0..).map(|(item, index)| content_item(item, index)).collect()
}

/// The range of the `content` array of a 2.x assistant row within `data`: what [`headwater_wire::canonical::content_revision`] takes.
///
/// # Errors
/// As [`assistant_items`].
pub fn content_range(data: &[u8]) -> Result<Range<usize>, RowError> {
    content(data).map(|(array, _)| array.range)
}

/// The indexes of the items that may be removed (P4), ascending: finished tools and reasoning of a completed assistant message.
///
/// # Errors
/// The reason why the whole message stays: not a completed assistant message, an unfinished tool, an unknown kind.
pub fn removable<I>(author: Author, items: I) -> Result<Vec<u32>, KeptReason>
where
    I: IntoIterator<Item = decide::Item>,
{
    let items: Vec<decide::Item> = items.into_iter().collect();
    decide::ensure_deletable(author, items.iter().copied())?;
    Ok(items.iter().zip(0..).filter(|(item, _)| item.is_technical()).map(|(_, index)| index).collect())
}

/// `data` without the elements of `content` at `indexes` (any order, repeated ones count once). Every other byte stays: the order of
/// members, unknown members, the spelling of numbers and escapes; each element takes one comma and the white space up to it along.
///
/// The caller has decided that the message may lose something ([`removable`]); this refuses an item that never may.
///
/// # Errors
/// As [`assistant_items`]; [`RowErrorKind::NoSuchItem`] and [`RowErrorKind::NotRemovable`].
pub fn remove_items(data: &[u8], indexes: &[u32]) -> Result<Vec<u8>, RowError> {
    let (array, items) = content(data)?;
    let mut goes = vec![false; items.len()];
    for &index in indexes {
        let found = usize::try_from(index).ok().and_then(|at| items.get(at).zip(goes.get_mut(at)));
        let Some((item, goes)) = found else {
            return Err(RowError::new(array.range.end, RowErrorKind::NoSuchItem(index)));
        };
        if !is_removable(&content_item(item, index)?) {
            return Err(RowError::new(item.range.start, RowErrorKind::NotRemovable(index)));
        }
        *goes = true;
    }
    let entries: Vec<_> = items.into_iter().map(|item| item.range).collect();
    let mut edits = Edits::default();
    edits.remove(&entries, |index| goes.get(index).copied().unwrap_or(false));
    Ok(edits.apply(data))
}

/// `data` without every item that may be removed: [`assistant_items`], [`removable`] and [`remove_items`] in one pass over the row.
/// `None` where nothing goes, because nothing technical is there or the whole message stays (P4).
///
/// # Errors
/// As [`assistant_items`].
pub fn remove_technical(author: Author, data: &[u8]) -> Result<Option<Vec<u8>>, RowError> {
    let (_, values) = content(data)?;
    let mut items = Vec::with_capacity(values.len());
    for (value, index) in values.iter().zip(0..) {
        items.push(decide::Item::from(&content_item(value, index)?));
    }
    let Ok(indexes) = removable(author, items.iter().copied()) else { return Ok(None) };
    if indexes.is_empty() {
        return Ok(None);
    }
    let entries: Vec<_> = values.into_iter().map(|value| value.range).collect();
    let mut edits = Edits::default();
    edits.remove(&entries, |index| items.get(index).is_some_and(|item| item.is_technical()));
    Ok(Some(edits.apply(data)))
}

fn is_removable(item: &ContentItem) -> bool {
    matches!(decide::Item::from(item), decide::Item::Reasoning | decide::Item::Tool { is_finished: true })
}

/// The content array of a row and its elements.
fn content(data: &[u8]) -> Result<(Value<'_>, Vec<Value<'_>>), RowError> {
    let row = document(data)?;
    let none = RowError::new(row.range.start, RowErrorKind::NoContent);
    let members = row.object()?.ok_or(none)?;
    let array = members.get("content").ok_or(none)?.clone();
    let items = array.array()?.ok_or(none)?;
    Ok((array, items))
}

fn content_item(item: &Value<'_>, index: u32) -> Result<ContentItem, RowError> {
    let members = item.object()?.unwrap_or(Object(Vec::new()));
    let name = members.text("type")?.map(|text| text.decode().unwrap_or_else(|_| text.raw().into()));
    let kind = PartKind::from_item_type(name.as_deref().unwrap_or_default());
    let (mut tool, mut status) = (None, None);
    if kind == PartKind::Tool {
        tool = members.text("name")?.map(|text| text.decode().unwrap_or_else(|_| text.raw().into()).into());
        if let Some(state) = members.object("state")? {
            status =
                state.text("status")?.map(|text| ToolStatus::from_name(&text.decode().unwrap_or_default()));
        }
    }
    Ok(ContentItem { index, kind, tool, status, range: item.range.clone() })
}

impl From<&PartFacts> for decide::Item {
    fn from(part: &PartFacts) -> Self {
        decided(&part.kind, part.status)
    }
}

impl From<&ContentItem> for decide::Item {
    fn from(item: &ContentItem) -> Self {
        decided(&item.kind, item.status)
    }
}

fn decided(kind: &PartKind, status: Option<ToolStatus>) -> decide::Item {
    match kind {
        PartKind::Tool => match status {
            Some(ToolStatus::Unknown) => decide::Item::Unknown,
            status => decide::Item::Tool { is_finished: status.is_some_and(ToolStatus::is_finished) },
        },
        PartKind::Reasoning => decide::Item::Reasoning,
        PartKind::Unknown(_) => decide::Item::Unknown,
        PartKind::Text
        | PartKind::StepStart
        | PartKind::StepFinish
        | PartKind::Patch
        | PartKind::File
        | PartKind::Compaction
        | PartKind::Subtask
        | PartKind::Agent
        | PartKind::Snapshot
        | PartKind::Retry => decide::Item::Stays,
    }
}

#[cfg(test)]
mod tests;
