//! What one row says about itself, from its beginning where that suffices.

use std::collections::HashMap;

use headwater_prune::decide::{Author, Compaction, Item};
use headwater_prune::rewrite::GAIN_BYTES_MIN;
use headwater_prune::{
    Class, Classes, ContentItem, Facts, KeptReason, MessageFacts, PartKind, Rewrite, Role, RowKind,
    ToolStatus, rewrite,
};
use serde::Deserialize;

use super::content::{FIELD_CLASSES, FieldGains, Gain, NameIndex, Names};
use super::glance::may_change;
use super::payload::{ON_LEAF_BYTES, Payloads, WHOLE_BYTES_MAX, Want};

/// How much of the payloads may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Beginnings, and rows that lie on one page.
    #[default]
    Prefix,
    /// Also whole rows up to [`NEAR_BYTES_MAX`], where one of these classes takes an amount out of such a row that only the row shows.
    Near(Classes),
    /// Whole rows up to [`WHOLE_BYTES_MAX`].
    Exact,
}

/// Largest row that is read to know what a class shortens in it. OpenCode cuts an output at 51 200 bytes and stores it up to twice, an
/// edit holds the file three times (fact A3): most tool rows are shorter, and together they are a small part of a database.
const NEAR_BYTES_MAX: u64 = 256 << 10;

impl Depth {
    fn whole_bytes_max(self, kind: RowKind) -> u64 {
        match self {
            Self::Near(classes) if is_in_doubt(kind, classes) => NEAR_BYTES_MAX,
            Self::Prefix | Self::Near(_) => ON_LEAF_BYTES,
            Self::Exact => WHOLE_BYTES_MAX,
        }
    }
}

/// Whether what `classes` take from a row of this kind may be far less than the row. The patches of a user message are all but the whole
/// row, and class technical takes 1.x rows whole.
fn is_in_doubt(kind: RowKind, classes: Classes) -> bool {
    let shorten_tools = TOOL_CLASSES.iter().any(|class| classes.has(*class));
    match kind {
        RowKind::Message => false,
        RowKind::Part => shorten_tools,
        RowKind::SessionMessage => shorten_tools || classes.has(Class::Technical),
    }
}

/// How far into a row its facts are looked for. OpenCode writes them before anything long; a row that has them later is not read
/// further and counts as unreadable, so it stays.
const FACTS_BYTES_MAX: usize = 256 << 10;

/// What a row of `message` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageSeen {
    pub(crate) author: Author,
    pub(crate) compaction: Compaction,
    pub(crate) gains: FieldGains,
}

impl MessageSeen {
    pub(crate) const UNREADABLE: Self =
        Self { author: Author::Unreadable, compaction: Compaction::None, gains: [None; 4] };
}

/// What a row of `part` says.
#[derive(Clone, Debug)]
pub(crate) struct PartSeen {
    pub(crate) item: Item,
    pub(crate) kind: NameIndex,
    pub(crate) tool: Option<NameIndex>,
    pub(crate) gains: FieldGains,
    /// Set where the part requests a compaction.
    pub(crate) compaction_tail: Option<Tail>,
}

impl PartSeen {
    pub(crate) fn unreadable(names: &mut Names) -> Self {
        Self {
            item: Item::Unreadable,
            kind: names.index(Names::OTHER),
            tool: None,
            gains: [None; 4],
            compaction_tail: None,
        }
    }
}

/// Where the messages begin that a compaction keeps for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With the request.
    Request,
    /// With this message.
    Message(Box<str>),
    /// Unknown: nothing counts as being before the compaction.
    Unknown,
}

impl Tail {
    /// The first position that the model goes on reading, where it is not the request's.
    pub(crate) fn position(&self, positions: &HashMap<Box<str>, u32>) -> Option<usize> {
        match self {
            Self::Request => None,
            Self::Message(id) => Some(positions.get(id).map_or(0, |position| *position as usize)),
            Self::Unknown => Some(0),
        }
    }
}

/// What a row of `session_message` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageV2Seen {
    pub(crate) author: Author,
    pub(crate) has_unfinished_tool: bool,
    pub(crate) compaction: Compaction,
    pub(crate) technical: Option<Result<Gain, KeptReason>>,
    pub(crate) gains: FieldGains,
}

impl MessageV2Seen {
    pub(crate) const UNREADABLE: Self = Self {
        author: Author::Unreadable,
        has_unfinished_tool: false,
        compaction: Compaction::None,
        technical: None,
        gains: [None; 4],
    };
}

/// The `data` of one row, which is text of `length` bytes.
pub(crate) struct RowText<'a, 'db> {
    pub(crate) payloads: &'a mut Payloads<'db>,
    pub(crate) rowid: i64,
    pub(crate) length: u64,
    pub(crate) depth: Depth,
}

impl RowText<'_, '_> {
    /// Asks `read` with a longer and longer beginning until it knows.
    fn known<T>(
        &mut self,
        first: Want,
        mut read: impl FnMut(&[u8], bool) -> Facts<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut want = first;
        loop {
            let (data, is_whole) = self.payloads.read(self.rowid, self.length, want)?;
            let bytes = data.len();
            match read(data, is_whole) {
                Facts::Known(facts) => return Ok(Some(facts)),
                Facts::Unreadable => return Ok(None),
                Facts::NeedMore if is_whole || bytes >= FACTS_BYTES_MAX => return Ok(None),
                Facts::NeedMore => want = Want::AtLeast((bytes * 8).min(FACTS_BYTES_MAX)),
            }
        }
    }

    /// The whole row of this kind, where the depth allows it.
    fn whole(&mut self, kind: RowKind) -> rusqlite::Result<Option<&[u8]>> {
        if self.length > self.depth.whole_bytes_max(kind) {
            return Ok(None);
        }
        self.payloads.whole(self.rowid, self.length).map(Some)
    }

    /// The id of the entity that an event row holds a copy of, `None` where it cannot be read.
    pub(crate) fn event_entity(&mut self, event_type: &str) -> rusqlite::Result<Option<Box<str>>> {
        let entity = self.known(Want::Prefix, |data, is_whole| {
            headwater_prune::event_entity(event_type, data, is_whole)
        })?;
        Ok(entity.flatten().map(|entity| entity.id))
    }

    /// What a row of `message` says.
    pub(crate) fn message(&mut self) -> rusqlite::Result<MessageSeen> {
        let on_leaf = Want::AtLeast(usize::try_from(ON_LEAF_BYTES).unwrap_or(usize::MAX));
        let Some(facts) = self.known(on_leaf, headwater_prune::message_facts)? else {
            return Ok(MessageSeen::UNREADABLE);
        };
        let mut gains = [None; 4];
        if let Some(offset) = facts.diffs {
            // The row still ends the array, the summary and the message.
            let at_most = self.length.saturating_sub(offset as u64 + 3);
            gains = self.gains(RowKind::Message, &[Class::Diffs], at_most)?;
        }
        Ok(MessageSeen { author: author(&facts), compaction: compaction(&facts), gains })
    }

    /// What a row of `part` says.
    pub(crate) fn part(&mut self, names: &mut Names) -> rusqlite::Result<PartSeen> {
        let Some(facts) = self.known(Want::Prefix, headwater_prune::part_facts)? else {
            return Ok(PartSeen::unreadable(names));
        };
        let mut gains = [None; 4];
        let mut compaction_tail = None;
        match facts.kind {
            PartKind::Tool if facts.status == Some(ToolStatus::Completed) => {
                let at_most = self.length.saturating_sub(COMPLETED_TOOL_BYTES);
                gains = self.gains(RowKind::Part, &TOOL_CLASSES, at_most)?;
            }
            PartKind::File => {
                let at_most = self.length.saturating_sub(FILE_BYTES);
                gains = self.gains(RowKind::Part, &[Class::Attachments], at_most)?;
            }
            PartKind::Compaction => compaction_tail = Some(self.tail()?),
            PartKind::Tool
            | PartKind::Text
            | PartKind::Reasoning
            | PartKind::StepStart
            | PartKind::StepFinish
            | PartKind::Patch
            | PartKind::Subtask
            | PartKind::Agent
            | PartKind::Snapshot
            | PartKind::Retry
            | PartKind::Unknown(_) => {}
        }
        Ok(PartSeen {
            item: Item::from(&facts),
            kind: names.index(facts.kind.name()),
            tool: facts.tool.as_deref().map(|tool| names.index(tool)),
            gains,
            compaction_tail,
        })
    }

    /// What each of `classes` frees alone: what rewriting the row shows where it may be read, else `at_most`.
    fn gains(&mut self, kind: RowKind, classes: &[Class], at_most: u64) -> rusqlite::Result<FieldGains> {
        let Some(data) = self.whole(kind)? else {
            let bound = |class| (at_most >= least_gain(class)).then_some(Gain::at_most(at_most));
            return Ok(FIELD_CLASSES.map(|class| classes.contains(&class).then_some(class).and_then(bound)));
        };
        // Most rows have nothing for any of them, which one scan shows. A row that cannot be rewritten stays as it is.
        let all = freed(kind, data, classes.iter().copied().collect());
        Ok(FIELD_CLASSES.map(|class| match (classes, all) {
            _ if all.is_none() || !classes.contains(&class) => None,
            ([_], _) => all,
            _ => freed(kind, data, Classes::NONE.with(class)),
        }))
    }

    fn tail(&mut self) -> rusqlite::Result<Tail> {
        #[derive(Deserialize)]
        struct CompactionPart {
            tail_start_id: Option<Box<str>>,
        }
        if self.length > SMALL_BYTES {
            return Ok(Tail::Unknown);
        }
        let data = self.payloads.whole(self.rowid, self.length)?;
        Ok(match serde_json::from_slice(data) {
            Ok(CompactionPart { tail_start_id: None }) => Tail::Request,
            Ok(CompactionPart { tail_start_id: Some(id) }) => Tail::Message(id),
            Err(_) => Tail::Unknown,
        })
    }

    /// What a row of `session_message` of this type says.
    pub(crate) fn message_v2(&mut self, row_type: &str) -> rusqlite::Result<MessageV2Seen> {
        let seen = MessageV2Seen { author: Author::Other, ..MessageV2Seen::UNREADABLE };
        match row_type {
            "assistant" => self.assistant_v2(),
            "user" => {
                let at_most = self.length.saturating_sub(FILE_BYTES);
                let gains = self.gains(RowKind::SessionMessage, &[Class::Attachments], at_most)?;
                Ok(MessageV2Seen { author: Author::User, gains, ..seen })
            }
            "compaction" => Ok(MessageV2Seen { compaction: self.compaction_v2()?, ..seen }),
            _ => Ok(seen),
        }
    }

    fn assistant_v2(&mut self) -> rusqlite::Result<MessageV2Seen> {
        let Some(completed) = self.known(Want::Prefix, headwater_prune::completion)? else {
            return Ok(MessageV2Seen::UNREADABLE);
        };
        let author = Author::Assistant { is_completed: completed.is_some() };
        let mut seen = MessageV2Seen { author, ..MessageV2Seen::UNREADABLE };
        let length = self.length;
        if let Some(data) = self.whole(RowKind::SessionMessage)? {
            let Ok(items) = headwater_prune::assistant_items(data) else {
                return Ok(MessageV2Seen::UNREADABLE);
            };
            seen.has_unfinished_tool =
                items.iter().any(|found| Item::from(found) == Item::Tool { is_finished: false });
            seen.technical = technical_v2(author, data, &items);
        } else if length > ASSISTANT_BYTES {
            seen.technical = Some(Ok(Gain::at_most(length - ASSISTANT_BYTES)));
        }
        let at_most = length.saturating_sub(ASSISTANT_BYTES);
        seen.gains = self.gains(RowKind::SessionMessage, &[Class::Metadata, Class::Attachments], at_most)?;
        Ok(seen)
    }

    /// A compaction row counts where it says that it is completed.
    fn compaction_v2(&mut self) -> rusqlite::Result<Compaction> {
        #[derive(Deserialize)]
        struct CompactionRow {
            status: Option<Box<str>>,
        }
        if self.length > SMALL_BYTES {
            return Ok(Compaction::None);
        }
        let data = self.payloads.whole(self.rowid, self.length)?;
        let row: Option<CompactionRow> = serde_json::from_slice(data).ok();
        let is_completed = row.is_some_and(|row| row.status.as_deref() == Some("completed"));
        Ok(if is_completed { Compaction::Whole } else { Compaction::None })
    }
}

/// What rewriting frees in a row, `None` where it changes nothing.
fn freed(kind: RowKind, data: &[u8], classes: Classes) -> Option<Gain> {
    if !may_change(kind, data, classes) {
        return None;
    }
    match rewrite(kind, data, classes) {
        Ok(Rewrite::Changed(left)) => Some(Gain::exact(data.len().saturating_sub(left.len()) as u64)),
        Ok(Rewrite::Unchanged) | Err(_) => None,
    }
}

/// The classes that shorten fields of a completed tool.
const TOOL_CLASSES: [Class; 3] = [Class::Metadata, Class::Attachments, Class::Compacted];

/// The least that `class` takes from a row; what holds less is left alone.
const fn least_gain(class: Class) -> u64 {
    if matches!(class, Class::Diffs) { 1 } else { GAIN_BYTES_MIN as u64 }
}

/// Compaction rows up to this length are read whole; a longer one counts as no compaction, so that more stays.
const SMALL_BYTES: u64 = 4 << 20;

/// Shortest completed tool part; what is shorter than this holds nothing to rewrite.
const COMPLETED_TOOL_BYTES: u64 = r#"{"type":"tool","state":{"status":"completed"}}"#.len() as u64;

/// Shortest file part or user row.
const FILE_BYTES: u64 = r#"{"type":"file"}"#.len() as u64;

/// Shortest completed assistant row of 2.x with an empty content.
const ASSISTANT_BYTES: u64 = r#"{"time":{"completed":1},"content":[]}"#.len() as u64;

fn author(facts: &MessageFacts) -> Author {
    match facts.role {
        Role::User => Author::User,
        Role::Assistant => Author::Assistant { is_completed: facts.completed.is_some() },
        Role::Unknown => Author::Unreadable,
    }
}

fn compaction(facts: &MessageFacts) -> Compaction {
    if facts.is_summary && facts.completed.is_some() && !facts.has_error {
        Compaction::Answer
    } else {
        Compaction::None
    }
}

/// What class technical takes from an assistant row of 2.x with these items.
fn technical_v2(author: Author, data: &[u8], items: &[ContentItem]) -> Option<Result<Gain, KeptReason>> {
    let items: Vec<Item> = items.iter().map(Item::from).collect();
    if !items.iter().any(|item| item.is_technical()) {
        return None;
    }
    Some(headwater_prune::removable(author, items).and_then(|indexes| {
        let left = headwater_prune::remove_items(data, &indexes).map_err(|_| KeptReason::Unreadable)?;
        Ok(Gain::exact(data.len().saturating_sub(left.len()) as u64))
    }))
}
