//! What is wrong, or odd, in a store.

use serde::Serialize;

/// Ids that a finding names at most.
pub const EXAMPLES_MAX: usize = 5;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Odd, and shown as far as it can be.
    Note,
    /// Something should be done about it.
    Warning,
    /// The store is damaged, or counts wrongly.
    Error,
}

/// One kind of fault, with how often it was found. Holds ids and names, never content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its stable name.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Where it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<&'static str>,
    /// How often.
    pub count: u64,
    /// The first ids or names, at most [`EXAMPLES_MAX`].
    pub examples: Vec<String>,
    /// What it means, and what to do.
    pub advice: &'static str,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The database itself says that it is broken.
    DamagedPages,
    /// Columns or tables that the store needs are missing.
    MissingColumns,
    /// Triggers that raise revisions are missing, switched off, or not this program's.
    Triggers,
    /// The journal of an earlier host is still there.
    Journal,
    /// Rows that belong to a row which is gone.
    Orphans,
    /// Counters of sessions that are gone.
    OrphanRevisions,
    /// Counters of prompts of sessions that are gone.
    OrphanPromptNumbers,
    /// Prompts of one session that have the same number, or a number above the last that was given out.
    PromptNumbers,
    /// Stored times that name no instant.
    UnreadableTimes,
    /// Metadata that is no JSON object.
    InvalidMetadata,
    /// Text that is not UTF-8.
    BrokenText,
}

impl Fault {
    /// The finding: none where nothing was found.
    pub fn found(self, table: Option<&'static str>, count: u64, examples: Vec<String>) -> Option<Finding> {
        let (code, severity, advice) = self.words();
        (count > 0).then_some(Finding { code, severity, table, count, examples, advice })
    }

    const fn words(self) -> (&'static str, Severity, &'static str) {
        use Severity::{Error, Note, Warning};
        match self {
            Self::DamagedPages => ("damaged-pages", Error, "the file is damaged: restore a backup"),
            Self::MissingColumns => (
                "missing-columns",
                Error,
                "run `headwater conversation cutover`, which adds what the store needs",
            ),
            Self::Triggers => (
                "triggers",
                Error,
                "changes are not counted, or counted twice: run `headwater conversation cutover`, which puts the triggers in place",
            ),
            Self::Journal => (
                "journal",
                Warning,
                "the journal of an earlier host: `headwater conversation cutover` removes it",
            ),
            Self::Orphans => (
                "orphans",
                Error,
                "rows whose session or turn is gone; no reading shows them, and another program wrote without foreign keys",
            ),
            Self::OrphanRevisions => (
                "orphan-revisions",
                Error,
                "counters of sessions that are gone; another program wrote without foreign keys",
            ),
            Self::OrphanPromptNumbers => {
                ("orphan-prompt-numbers", Note, "prompt counters of sessions that are gone; harmless")
            }
            Self::PromptNumbers => (
                "prompt-numbers",
                Warning,
                "prompts share a number, or a number is above the last one given out",
            ),
            Self::UnreadableTimes => {
                ("unreadable-times", Note, "stored times that name no instant: such rows come first, by id")
            }
            Self::InvalidMetadata => (
                "invalid-metadata",
                Note,
                "metadata that is no JSON object: shown as it is, and not merged with",
            ),
            Self::BrokenText => {
                ("broken-text", Note, "text that is not UTF-8: shown with replacement characters")
            }
        }
    }
}
