//! Where a record stands in its session.

use serde::{Deserialize, Serialize};

use crate::OrderTime;

/// The order of messages and of turns, one rule everywhere (C34): by time, cut to microseconds, then by the bytes of the id. A record whose
/// time does not parse stands before all others. Cursors and operations carry the key, so a deleted boundary still is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OrderKey {
    /// The time as the database computed it; none where the stored text is no time.
    pub time: Option<OrderTime>,
    /// The id of the record, unique in its table.
    pub id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_comes_first_and_ids_compare_by_bytes() {
        let key = |time: Option<&str>, id: &str| OrderKey {
            time: time.map(OrderTime::from_stored),
            id: id.to_owned(),
        };
        let noon = Some("2026-09-16 12:00:00.000000");
        let ordered = [
            key(None, "b"),
            key(None, "z"),
            key(Some("2026-09-16 11:59:59.999999"), "z"),
            key(noon, "A2"),
            key(noon, "B"),
            key(noon, "_x"),
            key(noon, "a-1"),
            key(noon, "a1"),
            key(noon, "é"),
        ];
        assert!(ordered.is_sorted());
    }
}
