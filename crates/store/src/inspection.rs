//! Whose database it is, and what it would take to work with it.

use headwater_model::ByteCount;
use serde::Serialize;

/// Whose database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody's: no table of a conversation is there, and in a file no other table either.
    Empty,
    /// Of another program, which is no agent host.
    Foreign {
        /// Whether it looks like OpenCode's.
        is_opencode: bool,
    },
    /// An agent host's, not opened as a conversation store before.
    Host,
    /// A conversation store.
    Ours,
    /// A conversation store of a later version of this program.
    Newer,
}

/// What a part of the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalKind {
    /// A table.
    Table,
    /// A trigger.
    Trigger,
    /// A function (PostgreSQL).
    Function,
}

/// A part of the journal that earlier hosts kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JournalPart {
    /// What it is.
    pub kind: JournalKind,
    /// Its name.
    pub name: &'static str,
    /// Bytes of a table, indexes included; zero for the others.
    pub bytes: ByteCount,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Whose database it is.
    pub standing: Standing,
    /// What of the journal is there.
    pub journal: Vec<JournalPart>,
    /// `table.column`, or a table, that readings need and the database lacks.
    pub missing: Vec<String>,
    /// Triggers that raise revisions and are not in place as this program wants them.
    pub triggers: Vec<String>,
}

impl Inspection {
    /// Nothing to speak of but whose it is.
    pub const fn of(standing: Standing) -> Self {
        Self { standing, journal: Vec::new(), missing: Vec::new(), triggers: Vec::new() }
    }

    /// Whether the database can be read as it is.
    pub const fn is_readable(&self) -> bool {
        matches!(self.standing, Standing::Host | Standing::Ours) && self.missing.is_empty()
    }

    /// Whether opening the database for writing would leave its schema as it is.
    pub fn is_current(&self) -> bool {
        self.standing == Standing::Ours
            && self.journal.is_empty()
            && self.missing.is_empty()
            && self.triggers.is_empty()
    }

    /// Bytes of the journal.
    pub fn journal_bytes(&self) -> ByteCount {
        ByteCount::new(self.journal.iter().map(|part| part.bytes.get()).sum())
    }
}
