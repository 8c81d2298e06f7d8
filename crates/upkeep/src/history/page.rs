//! One page of history.

use std::collections::BTreeMap;
use std::time::Duration;

use headwater_model::{ByteCount, ContentRevision, MessageId, SessionId};
use headwater_prune::KeptReason;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::cursor::{CursorKey, InvalidCursor, Place};
use super::look::{Look, Looked};
use super::scope::Scope;
use super::walk::{Segment, Stop, Walk};
use super::{PAGE_TIME, ROWS_PER_PAGE};
use crate::prune::{MessagePreview, PruneError, Why, preview_message};
use crate::reading::ReadError;
use crate::search::{Hit, Query};
use crate::{OpenError, ReadDatabase};

/// What is wanted of each message.
#[derive(Clone, Debug)]
pub enum Request {
    /// Messages that hold a text.
    Search {
        /// The text.
        query: Box<Query>,
        /// Also tool calls, diffs and other machinery.
        with_technical: bool,
        /// Also copies in the event log; each is an entry of its own.
        with_events: bool,
    },
    /// How much there is, by kind of item.
    Stats,
    /// What could be removed (P4), with what a prune request needs.
    Prune,
}

/// One page of a traversal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    /// What was found.
    pub content: PageContent,
    /// Messages looked at, skipped ones included.
    pub scanned: u32,
    /// Messages passed over, or read in part.
    pub skipped: Skipped,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageContent {
    /// One hit per message, with the matches of all its fields counted.
    Search(Vec<Hit>),
    /// Sums over the messages of this page, by kind of item and tool.
    Stats(Vec<KindTotal>),
    /// Messages of this page that can lose something.
    Prune(Vec<Candidate>),
}

/// Messages that were not read as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Some row of them cannot be decoded.
    pub unreadable: u32,
    /// Larger than [`super::MESSAGE_BYTES_MAX`].
    pub oversized: u32,
}

/// Items of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindTotal {
    /// Kind of the items.
    pub kind: String,
    /// Tool, for tool calls.
    pub tool: Option<String>,
    /// How many.
    pub items: u64,
    /// Their bytes as stored.
    pub bytes: ByteCount,
    /// How many could be removed.
    pub removable_items: u64,
    /// Bytes of those.
    pub removable_bytes: ByteCount,
}

/// A message that can lose technical items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its session.
    pub session: SessionId,
    /// The message.
    pub message: MessageId,
    /// The revision that a prune request must name (P3).
    pub revision: ContentRevision,
    /// The items that may go, by index, sorted.
    pub indexes: Vec<u32>,
    /// Bytes of those.
    pub bytes: ByteCount,
    /// Whether no item would remain.
    pub is_emptied: bool,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The cursor is not one of this traversal.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// The database cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A message cannot be previewed.
    #[error(transparent)]
    Preview(#[from] PruneError),
    /// A cursor cannot be made.
    #[error("cannot make a cursor")]
    Seal(#[source] serde_json::Error),
}

impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<OpenError> for HistoryError {
    fn from(error: OpenError) -> Self {
        Self::Read(error.into())
    }
}

/// Makes the page of `scope` that `cursor` names, or the first.
///
/// `clock` tells the time since any fixed moment. Each page looks at one message at least, so a traversal ends.
///
/// # Errors
/// [`HistoryError`]: the cursor belongs to something else, or the database cannot be read.
pub fn page(
    database: &ReadDatabase,
    scope: &Scope,
    request: &Request,
    cursor: Option<&str>,
    key: &CursorKey,
    clock: &dyn Fn() -> Duration,
) -> Result<Page, HistoryError> {
    let (connection, schema) = (database.connection(), database.schema());
    let binding = binding(scope, request);
    let place = cursor.map(|cursor| Place::unseal(cursor, key, &binding)).transpose()?;
    let begun = clock();
    let with_events = matches!(request, Request::Search { with_events: true, .. });
    let mut walk = Walk::new(connection, schema, scope, with_events, place)?;
    let mut made = Made::new(database, request);
    let is_end = loop {
        match walk.next_stop()? {
            Some(stop) => made.take(&stop)?,
            None if !walk.next_session()? => break true,
            None => {}
        }
        if made.scanned >= ROWS_PER_PAGE || clock().saturating_sub(begun) >= PAGE_TIME {
            break false;
        }
    };
    let next =
        if is_end { None } else { Some(walk.place().seal(key, &binding).map_err(HistoryError::Seal)?) };
    Ok(made.into_page(next))
}

/// What a cursor is bound to.
fn binding(scope: &Scope, request: &Request) -> Vec<u8> {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    match scope {
        Scope::Session(id) => ["session", id.as_str()].map(&mut add),
        Scope::Workspace(workspace) => {
            add("workspace");
            add(&workspace.directory);
            add(workspace.workspace.as_deref().map_or("-", |_| "+"));
            [workspace.project.as_str(), workspace.workspace.as_deref().unwrap_or_default()].map(&mut add)
        }
    };
    match request {
        Request::Search { query, with_technical, with_events } => {
            add(if *with_technical { "search, technical" } else { "search" });
            add(if *with_events { "events" } else { "" });
            add(&query.folded());
        }
        Request::Stats => add("stats"),
        Request::Prune => add("prune"),
    }
    hash.finalize().to_vec()
}

/// A page in the making.
struct Made<'a> {
    database: &'a ReadDatabase,
    look: Option<Look<'a>>,
    content: PageContent,
    totals: BTreeMap<(String, Option<String>), KindTotal>,
    scanned: u32,
    skipped: Skipped,
}

impl<'a> Made<'a> {
    fn new(database: &'a ReadDatabase, request: &'a Request) -> Self {
        let look = match request {
            Request::Search { query, with_technical, .. } => {
                Some(Look::new(database.connection(), database.schema(), query, *with_technical))
            }
            Request::Stats | Request::Prune => None,
        };
        let content = match request {
            Request::Search { .. } => PageContent::Search(Vec::new()),
            Request::Stats => PageContent::Stats(Vec::new()),
            Request::Prune => PageContent::Prune(Vec::new()),
        };
        let skipped = Skipped::default();
        Self { database, look, content, totals: BTreeMap::new(), scanned: 0, skipped }
    }

    fn take(&mut self, stop: &Stop) -> Result<(), HistoryError> {
        self.scanned += 1;
        if let Some(look) = &mut self.look {
            match look.at(stop)? {
                Looked::Oversized => self.skipped.oversized += 1,
                Looked::Read { hit, is_unreadable } => {
                    self.skipped.unreadable += u32::from(is_unreadable);
                    if let (PageContent::Search(hits), Some(hit)) = (&mut self.content, hit) {
                        hits.push(*hit);
                    }
                }
            }
            return Ok(());
        }
        debug_assert_ne!(stop.segment, Segment::Events, "only a search looks at events");
        if let Some(preview) = self.preview(stop)? {
            match &mut self.content {
                PageContent::Prune(candidates) => candidates.extend(candidate(preview)),
                PageContent::Stats(_) | PageContent::Search(_) => self.count(&preview),
            }
        }
        Ok(())
    }

    fn preview(&mut self, stop: &Stop) -> Result<Option<MessagePreview>, HistoryError> {
        let (Ok(session), Ok(message)) =
            (SessionId::new(stop.session.as_str()), MessageId::new(stop.id.as_str()))
        else {
            self.skipped.unreadable += 1;
            return Ok(None);
        };
        match preview_message(self.database.connection(), self.database.schema(), &session, &message)? {
            Ok(preview) => Ok(Some(preview)),
            Err(blocked) => {
                if blocked.why == Why::Kept(KeptReason::Oversized) {
                    self.skipped.oversized += 1;
                } else if blocked.why != Why::Kept(KeptReason::Gone) {
                    // One that its owner removed since the walk met it is nothing to count.
                    self.skipped.unreadable += 1;
                }
                Ok(None)
            }
        }
    }

    fn count(&mut self, preview: &MessagePreview) {
        for item in &preview.items {
            let key = (item.kind.clone(), item.tool.clone());
            let total = self.totals.entry(key).or_insert_with(|| KindTotal {
                kind: item.kind.clone(),
                tool: item.tool.clone(),
                items: 0,
                bytes: ByteCount::ZERO,
                removable_items: 0,
                removable_bytes: ByteCount::ZERO,
            });
            total.items += 1;
            total.bytes += item.bytes;
            if item.removable {
                total.removable_items += 1;
                total.removable_bytes += item.bytes;
            }
        }
    }

    fn into_page(self, next: Option<String>) -> Page {
        let content = match self.content {
            PageContent::Stats(_) => PageContent::Stats(self.totals.into_values().collect()),
            other @ (PageContent::Search(_) | PageContent::Prune(_)) => other,
        };
        Page { content, scanned: self.scanned, skipped: self.skipped, next }
    }
}

fn candidate(preview: MessagePreview) -> Option<Candidate> {
    let removable = || preview.items.iter().filter(|item| item.removable);
    let indexes: Vec<u32> = removable().map(|item| item.index).collect();
    if indexes.is_empty() {
        return None;
    }
    Some(Candidate {
        bytes: removable().map(|item| item.bytes).sum(),
        is_emptied: indexes.len() == preview.items.len(),
        session: preview.place.session,
        message: preview.message,
        revision: preview.revision,
        indexes,
    })
}
