//! What is asked of a source, and a page of its answer.

use std::num::NonZeroU8;

use headwater_model::conversation::{OrderKey, Selection};
use headwater_model::{Revision, SessionId};
use serde::{Deserialize, Serialize};

/// Most records of one page (C7).
const LIMIT_MAX: u8 = 100;

/// Records of a page where nobody says how many (C7).
const LIMIT_DEFAULT: NonZeroU8 = NonZeroU8::new(20).expect("twenty is not zero");

/// How many records a page may have: 1 to 100, 20 where nobody says (C7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct PageLimit(NonZeroU8);

/// The number is no page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a page has 1 to {LIMIT_MAX} records")]
pub struct PageLimitError;

impl PageLimit {
    /// The largest page.
    pub const MAX: Self = Self(NonZeroU8::new(LIMIT_MAX).expect("one hundred is not zero"));

    /// Takes `records` as the size of a page.
    ///
    /// # Errors
    /// [`PageLimitError`] for 0 and for more than 100.
    pub fn new(records: u64) -> Result<Self, PageLimitError> {
        let small = u8::try_from(records).ok().filter(|small| *small <= LIMIT_MAX);
        small.and_then(NonZeroU8::new).map(Self).ok_or(PageLimitError)
    }

    /// The number of records.
    pub const fn get(self) -> usize {
        self.0.get() as usize
    }
}

impl Default for PageLimit {
    fn default() -> Self {
        Self(LIMIT_DEFAULT)
    }
}

impl TryFrom<u64> for PageLimit {
    type Error = PageLimitError;
    fn try_from(records: u64) -> Result<Self, PageLimitError> {
        Self::new(records)
    }
}

impl From<PageLimit> for u64 {
    fn from(limit: PageLimit) -> Self {
        Self::from(limit.0.get())
    }
}

/// Which way a page goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// From the oldest on.
    #[default]
    Asc,
    /// From the newest back.
    Desc,
}

/// A page of one session's messages or turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// The session.
    pub session: SessionId,
    /// Which of its records.
    pub selection: Selection,
    /// Which way.
    pub sort: Sort,
    /// How many at most.
    pub limit: PageLimit,
    /// The key behind which the page begins, in the direction of `sort`; none for the first page. The record itself may be gone.
    pub after: Option<OrderKey>,
    /// The revision that the caller has applied; where the source is at another, the answer is an error and no rows (C9).
    pub expected: Option<Revision>,
}

impl PageQuery {
    /// The first page of everything, oldest first, of the usual size.
    pub fn of(session: SessionId) -> Self {
        Self {
            session,
            selection: Selection::default(),
            sort: Sort::default(),
            limit: PageLimit::default(),
            after: None,
            expected: None,
        }
    }
}

/// Records, and the revision at which all of them were read (C7, C8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<R> {
    /// At most as many as asked for, in order.
    pub records: Vec<R>,
    /// The revision of the session in the transaction that read them.
    pub revision: Revision,
    /// Whether more records are behind the last one.
    pub has_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_1_to_100_records() {
        assert_eq!(PageLimit::default().get(), 20);
        for good in [1, 20, 100] {
            assert_eq!(PageLimit::new(good).unwrap().get() as u64, good);
        }
        for bad in [0, 101, 256, 257, u64::MAX] {
            assert_eq!(PageLimit::new(bad), Err(PageLimitError), "{bad}");
        }
    }
}
