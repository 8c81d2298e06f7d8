//! A prune of selected items of one message, as a value (P2, P6).

use std::collections::BTreeSet;
use std::fmt;

use headwater_model::{ContentRevision, MessageId, SessionId};
use headwater_wire::canonical;
use headwater_wire::limits::{ITEM_INDEX_MAX, ITEM_INDEXES_MAX};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A request to remove items of one message that were previewed at one revision. Strict as JSON: unknown keys, repeated or missing
/// members, and values outside P2 are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// The session.
    pub session: SessionId,
    /// The message.
    pub message: MessageId,
    /// Positions of the items, in the content array (2.x) or in the parts in id order (1.x).
    pub indexes: Indexes,
    /// The revision that was previewed.
    pub revision: ContentRevision,
}

/// 1 to 100 001 distinct positions of 0 to 100 000 (P2), ascending. The order in which a caller names them means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct Indexes(Vec<u32>);

/// Why a list is not a selection of items (P2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexesError {
    /// The list is empty.
    #[error("no index is given")]
    Empty,
    /// The list has more entries than there are positions.
    #[error("more than {ITEM_INDEXES_MAX} indexes are given")]
    TooMany,
    /// A position beyond 100 000.
    #[error("index {0} is larger than {ITEM_INDEX_MAX}")]
    TooLarge(u32),
    /// A position that is given twice.
    #[error("index {0} is given twice")]
    Repeated(u32),
}

impl Indexes {
    /// Takes a list of positions.
    ///
    /// # Errors
    /// [`IndexesError`] where the list is outside P2.
    pub fn new(indexes: impl IntoIterator<Item = u32>) -> Result<Self, IndexesError> {
        let mut distinct = BTreeSet::new();
        for index in indexes {
            if index > ITEM_INDEX_MAX {
                return Err(IndexesError::TooLarge(index));
            }
            if !distinct.insert(index) {
                return Err(IndexesError::Repeated(index));
            }
        }
        if distinct.is_empty() { Err(IndexesError::Empty) } else { Ok(Self(distinct.into_iter().collect())) }
    }

    /// The positions, ascending.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

impl TryFrom<Vec<u32>> for Indexes {
    type Error = IndexesError;

    fn try_from(indexes: Vec<u32>) -> Result<Self, IndexesError> {
        if indexes.len() > ITEM_INDEXES_MAX { Err(IndexesError::TooMany) } else { Self::new(indexes) }
    }
}

impl From<Indexes> for Vec<u32> {
    fn from(indexes: Indexes) -> Self {
        indexes.0
    }
}

/// The name of a request: equal for equal requests, so that a receipt is found again when a request is repeated (P6). Written as 64
/// lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestKey(ContentRevision);

impl RequestKey {
    /// The 32 bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::str::FromStr for RequestKey {
    type Err = headwater_model::ParseContentRevisionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Keeps the hashes of requests apart from every other SHA-256 over canonical JSON.
const DOMAIN: &[u8] = b"headwater prune request 1\n";

/// The key of `request`: SHA-256 over a domain prefix and the canonical JSON of the request with its indexes ascending.
///
/// # Panics
/// Never: a request holds text and small integers only, which always have a canonical form. The fallback hashes the debug form.
pub fn request_key(request: &PruneRequest) -> RequestKey {
    let json = serde_json::to_vec(request).unwrap_or_else(|_| format!("{request:?}").into_bytes());
    let form = canonical::canonicalize(&json).unwrap_or(json);
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(&form);
    RequestKey(ContentRevision::from_bytes(hash.finalize().into()))
}
