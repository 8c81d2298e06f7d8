//! What a search hands out.

use headwater_model::UnixMillis;
use serde::Serialize;

use super::excerpt::Excerpt;
use super::field::{Field, Origin};

/// Which storage a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A session's title.
    Session,
    /// `message` of 1.x.
    Message,
    /// `part` of 1.x.
    Part,
    /// `session_message` of 2.x (and of the `/api/session` routes of 1.18).
    SessionMessage,
    /// A copy in the event log.
    Event,
}

/// One field of one row that holds the query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Where the row is stored.
    pub source: Source,
    /// Session of the row, as stored. The session itself may be gone.
    pub session: String,
    /// Title of the session, where it exists and has one.
    pub title: Option<String>,
    /// Directory of the session, where it exists.
    pub directory: Option<String>,
    /// Whether the session is archived.
    pub is_archived: bool,
    /// Message, where the row is one, belongs to one or is a copy of one.
    pub message: Option<String>,
    /// Part (1.x).
    pub part: Option<String>,
    /// Position among the parts of the message: in id order (1.x) or in the content array (2.x). The index that `preview` takes (P3).
    pub part_index: Option<u32>,
    /// Event row, for a copy in the event log.
    pub event: Option<String>,
    /// Who or what the message comes from.
    pub origin: Origin,
    /// Which field.
    pub field: Field,
    /// Tool of a call.
    pub tool: Option<String>,
    /// When the row was made.
    pub time: Option<UnixMillis>,
    /// Matches in the field.
    pub occurrences: u64,
    /// Text around the first match.
    pub excerpt: Excerpt,
}

impl Hit {
    /// Memory that the hit takes, roughly.
    pub(super) fn bytes_held(&self) -> usize {
        let optional = [&self.title, &self.directory, &self.message, &self.part, &self.event, &self.tool];
        let texts = optional.into_iter().flatten().map(String::len).sum::<usize>();
        size_of::<Self>() + self.session.len() + self.excerpt.text.len() + texts
    }
}

/// What a search did. Complete and exact unless `is_cancelled` or `is_limited`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SearchTotals {
    /// Rows looked at.
    pub rows_scanned: u64,
    /// Bytes of them.
    pub bytes_scanned: u64,
    /// Rows with at least one hit.
    pub rows_matched: u64,
    /// Fields that hold the query, handed out or not.
    pub hits: u64,
    /// Hits that were found and not handed out, because their row has more than a thousand of them.
    pub hits_unlisted: u64,
    /// 1.x rows left out because the 2.x copy of the same message was found as well.
    pub rows_duplicate: u64,
    /// Rows that may hold the query and cannot be decoded.
    pub rows_unreadable: u64,
    /// Whether the limit ended the search: there may be more hits.
    pub is_limited: bool,
    /// Whether the caller ended the search.
    pub is_cancelled: bool,
}
