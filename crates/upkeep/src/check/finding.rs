//! What can be wrong with a database, how bad each is, and what a person does about it.

use std::collections::BTreeMap;

use serde::Serialize;

/// Most examples that a finding names.
pub const EXAMPLES_MAX: usize = 5;

/// Longest example in characters.
const EXAMPLE_CHARS_MAX: usize = 300;

/// How bad a finding is. The order is from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Something is left over or inconsistent; OpenCode works.
    Warning,
    /// Content is damaged, or OpenCode cannot use some of it.
    Error,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// SQLite's own check finds pages, indexes or constraints broken.
    PageDamage,
    /// Damage stopped a step of the check.
    StepStopped,
    /// A row breaks a foreign key.
    ForeignKey,
    /// OpenCode cannot decode a row, which makes its whole session unreadable.
    UndecodableRow,
    /// A row too large to be judged as a whole is JSON, but was not looked at further.
    RowNotJudged,
    /// A part whose message is gone.
    PartWithoutMessage,
    /// A message whose session is gone.
    MessageWithoutSession,
    /// Another row that belongs to a session that is gone.
    RowWithoutSession,
    /// Events of a session that is gone: maybe the only copy of it.
    EventsWithoutSession,
    /// A counter of a session that is gone.
    SequenceWithoutSession,
    /// Events without a counter.
    EventsWithoutSequence,
    /// A counter behind the rows it numbers: OpenCode's next write to the session fails.
    SequenceBehind,
    /// A session in both layouts: the 1.x copy is frozen.
    SessionInBothLayouts,
    /// 1.x rows of a session that was deleted in 2.x.
    Leftover,
    /// A session whose parent is gone.
    ParentMissing,
    /// Sessions that name each other as parent.
    ParentLoop,
    /// A session row whose id is not usable text.
    UnusableSessionId,
    /// A table that OpenCode does not have.
    UnknownTable,
    /// A column that OpenCode does not have.
    UnknownColumn,
    /// A trigger; OpenCode has none.
    Trigger,
    /// A view; OpenCode has none.
    View,
    /// An index of OpenCode's is missing: it works, slowly.
    MissingIndex,
    /// Not in write-ahead-log mode; OpenCode changes that when it starts.
    JournalMode,
    /// The log is large.
    LargeLog,
    /// Pages are moved at every commit.
    AutoVacuum,
    /// Tables, but no record of migrations: OpenCode refuses to start on it.
    NoMigrations,
    /// The file lies on a network file system.
    NetworkFileSystem,
}

impl Code {
    /// How bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Self::PageDamage
            | Self::StepStopped
            | Self::UndecodableRow
            | Self::SequenceBehind
            | Self::NoMigrations => Severity::Error,
            Self::ForeignKey
            | Self::PartWithoutMessage
            | Self::MessageWithoutSession
            | Self::RowWithoutSession
            | Self::EventsWithoutSequence
            | Self::ParentMissing
            | Self::ParentLoop
            | Self::UnusableSessionId
            | Self::Trigger
            | Self::MissingIndex
            | Self::LargeLog
            | Self::NetworkFileSystem => Severity::Warning,
            Self::RowNotJudged
            | Self::EventsWithoutSession
            | Self::SequenceWithoutSession
            | Self::SessionInBothLayouts
            | Self::Leftover
            | Self::UnknownTable
            | Self::UnknownColumn
            | Self::View
            | Self::JournalMode
            | Self::AutoVacuum => Severity::Note,
        }
    }

    /// What to do, as one sentence fragment.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::PageDamage | Self::StepStopped => {
                "stop OpenCode, keep a copy of the file, and run `headwater salvage` into a new one"
            }
            Self::ForeignKey
            | Self::PartWithoutMessage
            | Self::MessageWithoutSession
            | Self::RowWithoutSession => {
                "rows that a deletion left behind: `headwater export` saves what they hold; OpenCode never shows them"
            }
            Self::UndecodableRow => {
                "OpenCode cannot open these sessions: `headwater show` and `headwater export` still read them; delete or restore the rows named"
            }
            Self::RowNotJudged => {
                "nothing, unless OpenCode fails on the session; `headwater prune --class diffs` makes such rows small"
            }
            Self::EventsWithoutSession => {
                "maybe the only copy of a conversation: `headwater export` saves it"
            }
            Self::SequenceWithoutSession => "nothing: a few bytes each",
            Self::EventsWithoutSequence => {
                "OpenCode numbers the next events from 0 and fails on the first: prune the class `events` for these sessions"
            }
            Self::SequenceBehind => {
                "OpenCode's next write to these sessions fails: prune the class `events`, or restore a backup"
            }
            Self::SessionInBothLayouts => {
                "normal after an upgrade to 2.x: the 1.x copy takes space and is not shown"
            }
            Self::Leftover => "`headwater prune --class leftover` removes them",
            Self::ParentMissing | Self::ParentLoop => {
                "the sessions work; as trees they are judged by their own last use"
            }
            Self::UnusableSessionId => "not written by OpenCode: nothing here touches such a row",
            Self::UnknownTable | Self::UnknownColumn => {
                "kept as it is: written by another program or a newer OpenCode"
            }
            Self::Trigger => "prune refuses a database with triggers: find out which program made them",
            Self::View => "nothing: views hold no data",
            Self::MissingIndex => {
                "start OpenCode once; if that does not help, `headwater rebuild --force` keeps what is there, so restore the index by hand"
            }
            Self::JournalMode => "nothing: OpenCode turns on the write-ahead log when it starts",
            Self::LargeLog => {
                "stop OpenCode and run `headwater vacuum`, or find who holds the log with `headwater locate`"
            }
            Self::AutoVacuum => "nothing: the file shrinks by itself, and each commit costs more",
            Self::NoMigrations => "OpenCode does not start on this file: restore a backup",
            Self::NetworkFileSystem => {
                "move the database to a local disk: SQLite's locks do not protect it there"
            }
        }
    }
}

/// One kind of finding, maybe of one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was found.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The table, where it is about one.
    pub table: Option<String>,
    /// How many.
    pub count: u64,
    /// Ids, names or SQLite's words; at most [`EXAMPLES_MAX`], never content.
    pub examples: Vec<String>,
    /// What to do.
    pub advice: &'static str,
}

/// Findings under way, by code and table.
#[derive(Debug, Default)]
pub(super) struct Findings(BTreeMap<(Code, Option<String>), (u64, Vec<String>)>);

impl Findings {
    /// Counts one, and keeps its example while there are few.
    pub(super) fn add(&mut self, code: Code, table: Option<&str>, example: &str) {
        self.add_many(code, table, 1, example);
    }

    /// Counts `count` of which `example` names one.
    pub(super) fn add_many(&mut self, code: Code, table: Option<&str>, count: u64, example: &str) {
        let (counted, examples) = self.0.entry((code, table.map(str::to_owned))).or_default();
        *counted += count;
        if examples.len() < EXAMPLES_MAX {
            let printable = |c: char| if c.is_control() { ' ' } else { c };
            examples.push(example.chars().map(printable).take(EXAMPLE_CHARS_MAX).collect());
        }
    }

    pub(super) fn into_sorted(self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self
            .0
            .into_iter()
            .map(|((code, table), (count, examples))| Finding {
                code,
                severity: code.severity(),
                table,
                count,
                examples,
                advice: code.advice(),
            })
            .collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
    }
}
