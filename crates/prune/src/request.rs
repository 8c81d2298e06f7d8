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

#[cfg(test)]
mod tests {
    use super::*;

    const REVISION: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn request(json: &str) -> Result<PruneRequest, String> {
        serde_json::from_str(&json.replace("REV", REVISION)).map_err(|error| error.to_string())
    }

    fn key(json: &str) -> String {
        request_key(&request(json).unwrap()).to_string()
    }

    #[test]
    fn equal_requests_have_one_key_and_others_another() {
        let first = key(r#"{"session":"ses_1","message":"msg_1","indexes":[2,0],"revision":"REV"}"#);
        assert_eq!(first, key(r#"{"revision":"REV","indexes":[0,2],"message":"msg_1","session":"ses_1"}"#));
        let others = [
            key(r#"{"session":"ses_2","message":"msg_1","indexes":[2,0],"revision":"REV"}"#),
            key(r#"{"session":"ses_1","message":"msg_2","indexes":[2,0],"revision":"REV"}"#),
            key(r#"{"session":"ses_1","message":"msg_1","indexes":[2],"revision":"REV"}"#),
            key(&r#"{"session":"ses_1","message":"msg_1","indexes":[2,0],"revision":"REV"}"#
                .replace("REV", &"f".repeat(64))),
        ];
        assert!(!others.contains(&first));
        // Receipts are found by this key in files that older releases wrote.
        assert_eq!(first, "8881b3b148cb67ce764857905c41f6d0963a0e5fb25e127d4d02adcc1ee84d04");
        assert_eq!(first.parse::<RequestKey>().unwrap().to_string(), first);
    }

    #[test]
    fn what_is_outside_the_bounds_is_refused() {
        let all: Vec<String> = (0..=ITEM_INDEX_MAX).map(|index| index.to_string()).collect();
        let with = |indexes: &str| {
            request(&format!(r#"{{"session":"s","message":"m","indexes":{indexes},"revision":"REV"}}"#))
        };
        assert_eq!(with(&format!("[{}]", all.join(","))).unwrap().indexes.as_slice().len(), ITEM_INDEXES_MAX);
        for bad in ["[]", "[100001]", "[1,1]", "[-1]", "[1.0]", "[\"1\"]", "[4294967296]", "1", "null"] {
            assert!(with(bad).is_err(), "{bad}");
        }
        assert!(with(&format!("[{},0]", all.join(","))).unwrap_err().contains("more than 100001"));
        for bad in [
            r#"{"session":"s","message":"m","indexes":[1]}"#,
            r#"{"session":"s","message":"m","indexes":[1],"revision":"REV","force":true}"#,
            r#"{"session":"s","session":"s","message":"m","indexes":[1],"revision":"REV"}"#,
            r#"{"session":"","message":"m","indexes":[1],"revision":"REV"}"#,
            r#"{"session":"s","message":"m","indexes":[1],"revision":"REVx"}"#,
        ] {
            assert!(request(bad).is_err(), "{bad}");
        }
        assert!(
            request(&format!(
                r#"{{"session":"{}","message":"m","indexes":[1],"revision":"REV"}}"#,
                "x".repeat(257)
            ))
            .is_err()
        );
    }
}
