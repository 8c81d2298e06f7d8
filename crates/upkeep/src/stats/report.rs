//! What `stats` reports (P14). Sizes are bytes; a size of rows is the length of their `data`, a size of files or pages what they take on
//! disk. Lists are sorted by size, largest first, unless said otherwise.

use std::path::PathBuf;

use headwater_model::{ByteCount, UnixMillis};
use headwater_prune::{Class, ModelEffect};
use serde::Serialize;

use crate::holders::Holders;
use crate::plan::ClassTotal;

/// Where the space of a database goes.
#[derive(Clone, Debug, Serialize)]
pub struct StatsReport {
    /// The file, its pages and its log.
    pub database: DatabaseFigures,
    /// Whether somebody else has the database open: figures are then of several instants, some milliseconds apart.
    pub several_instants: bool,
    /// Every table.
    pub tables: Vec<TableFigures>,
    /// Every index.
    pub indexes: Vec<IndexFigures>,
    /// Event rows by type.
    pub event_types: Vec<Group>,
    /// 1.x parts by kind.
    pub part_kinds: Vec<Group>,
    /// 1.x tool parts by tool.
    pub tools: Vec<Group>,
    /// 1.x messages by role.
    pub roles: Vec<Group>,
    /// 2.x rows by type.
    pub message_types: Vec<Group>,
    /// How many sessions there are, each counted once whatever layouts hold it.
    pub session_count: SessionCount,
    /// The largest sessions by size with everything below them, at most as many as asked for.
    pub sessions: Vec<SessionFigures>,
    /// Sessions by project.
    pub projects: Vec<ProjectFigures>,
    /// Session trees by last use, in the order of [`Age`].
    pub ages: Vec<AgeFigures>,
    /// The largest rows, at most as many as asked for.
    pub largest_rows: Vec<LargeRow>,
    /// The folders beside the database.
    pub folders: Vec<FolderFigures>,
    /// Rows that name a session without a session row, by table; of tables with such rows only.
    pub without_session: Vec<Group>,
    /// Event rows without a session row: they may be the only copy of a conversation and are never a class to remove.
    pub recoverable: Recoverable,
    /// Rows that cannot be read or whose kind is unknown, by table; they always stay.
    pub unreadable: Vec<Group>,
    /// Tables that OpenCode does not have; they are kept.
    pub unknown_tables: Vec<String>,
    /// What each class would free if it were taken alone, in the order of [`Class::ALL`]; without [`Class::Sessions`], which depends
    /// on the age asked for.
    pub classes: Vec<ClassFigures>,
}

/// The file, its pages and its log.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseFigures {
    /// The path with all symlinks resolved.
    pub path: PathBuf,
    /// Size of the file.
    pub bytes: ByteCount,
    /// Bytes of one page.
    pub page_size: u64,
    /// Pages of the database, those in the log included.
    pub page_count: u64,
    /// Pages that hold nothing. Only a rebuild or a vacuum gives them back.
    pub free_pages: u64,
    /// Bytes of the free pages.
    pub free_bytes: ByteCount,
    /// Journal mode as the file has it.
    pub journal_mode: String,
    /// The write-ahead log.
    pub log: LogFigures,
    /// Who holds the database, as far as the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<Holders>,
}

/// The write-ahead log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogFigures {
    /// What is there.
    pub state: LogState,
    /// Size of the file.
    pub bytes: ByteCount,
    /// Most pages that it can hold at this size; a log that was used up is written again from its beginning, so fewer may count.
    pub frames_max: u64,
    /// Whether a holder reads an older state, so that the log cannot be reset.
    pub is_pinned: bool,
}

/// What stands beside the database as its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogState {
    /// No file.
    #[default]
    None,
    /// A file without bytes.
    Empty,
    /// A file with frames. It stays after a normal stop and says nothing about a running server (fact A1).
    Filled,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableFigures {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Bytes that its rows hold: `data` where there is such a column, else all columns. `None` for tables that hold secrets and for
    /// virtual tables, which are not looked into.
    pub bytes: Option<ByteCount>,
    /// Bytes of its pages; only where payloads may be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<ByteCount>,
    /// Whether OpenCode has such a table.
    pub is_known: bool,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IndexFigures {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: String,
    /// Bytes of its pages; `None` where they cannot be read.
    pub page_bytes: Option<ByteCount>,
}

/// Rows with something in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Group {
    /// What they share.
    pub name: String,
    /// How many.
    pub rows: u64,
    /// Bytes that they hold.
    pub bytes: ByteCount,
}

/// How many sessions there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionCount {
    /// All of them.
    pub total: u64,
    /// Those that only 1.x tables hold.
    pub v1_only: u64,
    /// Those that only 2.x tables hold.
    pub v2_only: u64,
    /// Those that both hold under one id: the 2.x row is the live one, and the history may exist twice (fact B2).
    pub both: u64,
    /// Bytes of 1.x rows of sessions that both hold.
    pub twice_stored_bytes: ByteCount,
    /// Trees: sessions without the subagent children below them.
    pub trees: u64,
    /// Sessions in trees whose top names a missing parent, or whose parents form a loop.
    pub in_broken_trees: u64,
    /// Archived sessions.
    pub archived: u64,
}

/// Which layouts hold a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBy {
    /// 1.x tables.
    V1,
    /// 2.x tables.
    V2,
    /// Both, under one id.
    Both,
    /// None: only other rows name it.
    None,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionFigures {
    /// Its id.
    pub id: String,
    /// Its parent, as stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its title, at most 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Which layouts hold it.
    pub held_by: HeldBy,
    /// When it was last used, as stored.
    pub last_use: UnixMillis,
    /// What its own rows hold.
    pub own: SessionBytes,
    /// What its rows hold and those of all sessions below it.
    pub with_tree: SessionBytes,
}

/// What rows of sessions hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionBytes {
    /// Rows of messages, parts and events.
    pub rows: u64,
    /// Bytes of messages and parts.
    pub content_bytes: ByteCount,
    /// Bytes of event rows.
    pub event_bytes: ByteCount,
}

impl SessionBytes {
    /// All bytes.
    pub fn bytes(&self) -> ByteCount {
        self.content_bytes + self.event_bytes
    }

    /// Adds another's rows and bytes.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.content_bytes += other.content_bytes;
        self.event_bytes += other.event_bytes;
    }
}

/// One project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectFigures {
    /// Its id.
    pub id: String,
    /// Its folder, where the project has a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Its sessions.
    pub sessions: u64,
    /// What their rows hold.
    pub rows: SessionBytes,
    /// The latest use of one of them.
    pub last_use: UnixMillis,
}

/// How long ago a tree was last used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Age {
    /// After the caller's clock: some clock was wrong.
    Future,
    /// Less than a day.
    Day,
    /// Less than 7 days.
    Week,
    /// Less than 30 days.
    Month,
    /// Less than 90 days.
    Quarter,
    /// Less than 365 days.
    Year,
    /// 365 days or more.
    Older,
    /// The last use is zero or negative.
    Unknown,
}

/// Trees of one age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AgeFigures {
    /// The age.
    pub age: Age,
    /// Trees.
    pub trees: u64,
    /// Their sessions.
    pub sessions: u64,
    /// What their rows hold.
    pub rows: SessionBytes,
}

/// One large row, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LargeRow {
    /// Its table.
    pub table: &'static str,
    /// Its id; `None` where it has gone since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The session that it names.
    pub session: String,
    /// Bytes of its `data`.
    pub bytes: ByteCount,
}

/// A folder beside the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FolderFigures {
    /// Its name inside the folder of the database.
    pub name: &'static str,
    /// What OpenCode keeps there.
    pub holds: &'static str,
    /// Its files; symlinks are neither followed nor counted.
    pub files: u64,
    /// Their sizes.
    pub bytes: ByteCount,
    /// Whether every file was counted: false past a million entries, and where a folder cannot be read.
    pub is_complete: bool,
}

/// Events without a session row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recoverable {
    /// Sessions that only their events know.
    pub sessions: u64,
    /// Event rows.
    pub rows: u64,
    /// Bytes of the event rows.
    pub bytes: ByteCount,
}

/// What a class would free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassFigures {
    /// The class.
    pub class: Class,
    /// What it changes for the model.
    pub model_effect: ModelEffect,
    /// What it frees if it is taken alone.
    #[serde(flatten)]
    pub total: ClassTotal,
}
