//! What a survey knows of the rows of one session.

use headwater_prune::Class;
use headwater_prune::KeptReason;
use headwater_prune::decide::{Author, Compaction, Item};

/// What one class frees in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gain {
    pub(crate) bytes: u64,
    /// Whether `bytes` is what a removal frees; else it frees at most that.
    pub(crate) is_exact: bool,
}

impl Gain {
    pub(crate) fn exact(bytes: u64) -> Self {
        Self { bytes, is_exact: true }
    }

    pub(crate) fn at_most(bytes: u64) -> Self {
        Self { bytes, is_exact: false }
    }
}

/// The classes that rewrite their own field of a row, in the order in which several on one row share its bytes.
pub(crate) const FIELD_CLASSES: [Class; 4] =
    [Class::Diffs, Class::Metadata, Class::Attachments, Class::Compacted];

/// What each of [`FIELD_CLASSES`] frees in one row, `None` where nothing.
pub(crate) type FieldGains = [Option<Gain>; 4];

/// Position of a name (tool, event type, kind) in [`Names`].
pub(crate) type NameIndex = u16;

/// A row of `message`.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) rowid: i64,
    pub(crate) id: Box<str>,
    pub(crate) length: u64,
    pub(crate) author: Author,
    pub(crate) compaction: Compaction,
    pub(crate) gains: FieldGains,
}

/// A row of `part`.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) rowid: i64,
    /// Position of its message in [`ContentV1::messages`], `None` where the message is not among those of the session.
    pub(crate) message: Option<u32>,
    pub(crate) length: u64,
    pub(crate) item: Item,
    /// Name of its kind.
    pub(crate) kind: NameIndex,
    /// Name of its tool.
    pub(crate) tool: Option<NameIndex>,
    pub(crate) gains: FieldGains,
}

/// The 1.x rows of one session.
#[derive(Debug, Default)]
pub(crate) struct ContentV1 {
    /// Oldest first, in OpenCode's order (time created, id).
    pub(crate) messages: Vec<Message>,
    /// In the order of the index on their session.
    pub(crate) parts: Vec<Part>,
}

/// A row of `session_message`.
#[derive(Clone, Debug)]
pub(crate) struct MessageV2 {
    pub(crate) rowid: i64,
    pub(crate) id: Box<str>,
    pub(crate) length: u64,
    /// Name of its type.
    pub(crate) kind: NameIndex,
    pub(crate) author: Author,
    pub(crate) has_unfinished_tool: bool,
    pub(crate) compaction: Compaction,
    /// What class technical frees, or why the message loses nothing to it; `None` where it has nothing technical.
    pub(crate) technical: Option<Result<Gain, KeptReason>>,
    pub(crate) gains: FieldGains,
}

/// The 2.x rows of one session, oldest first (seq).
#[derive(Debug, Default)]
pub(crate) struct ContentV2 {
    pub(crate) messages: Vec<MessageV2>,
}

/// Names met in the rows, each held once. Past [`Names::MAX`] all further ones share the last position.
#[derive(Debug, Default)]
pub(crate) struct Names {
    positions: std::collections::HashMap<Box<str>, NameIndex>,
    names: Vec<Box<str>>,
}

impl Names {
    /// Most names held: a damaged or hostile file may hold a new one in each row.
    const MAX: usize = 4096;
    /// What stands for the names beyond [`Names::MAX`], and for rows whose name cannot be read.
    pub(crate) const OTHER: &str = "(other)";

    pub(crate) fn index(&mut self, name: &str) -> NameIndex {
        if let Some(position) = self.positions.get(name) {
            return *position;
        }
        let name = if self.names.len() < Self::MAX && name.len() <= 256 { name } else { Self::OTHER };
        if let Some(position) = self.positions.get(name) {
            return *position;
        }
        let position = NameIndex::try_from(self.names.len()).unwrap_or(NameIndex::MAX);
        self.names.push(name.into());
        self.positions.insert(name.into(), position);
        position
    }

    pub(crate) fn name(&self, position: NameIndex) -> &str {
        self.names.get(usize::from(position)).map_or(Self::OTHER, AsRef::as_ref)
    }
}
