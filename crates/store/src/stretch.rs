//! The parts of an order that a page is read from.

use headwater_model::OrderTime;
use headwater_model::conversation::OrderKey;

use crate::Sort;

/// A part of the order that one range of an index on (session, time, id) holds. "Behind" is in the direction of the page.
///
/// One comparison of (time, id) would say it at once, but SQLite finds no range of an index of expressions for it, and NULL, which both
/// databases have for what is no time, compares with nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// All of it.
    Whole,
    /// Records without a time, behind this id or all.
    Timeless(Option<String>),
    /// Records with this very time, behind this id.
    Ties(OrderTime, String),
    /// Records with a time, behind this one or all.
    Timed(Option<OrderTime>),
}

impl Stretch {
    /// What is behind `after`, part by part in the direction of `sort`.
    pub fn behind(after: Option<&OrderKey>, sort: Sort) -> Vec<Self> {
        let Some(OrderKey { time, id }) = after else { return vec![Self::Whole] };
        let id = id.clone();
        match (time.clone(), sort) {
            (None, Sort::Asc) => vec![Self::Timeless(Some(id)), Self::Timed(None)],
            (None, Sort::Desc) => vec![Self::Timeless(Some(id))],
            (Some(time), Sort::Asc) => vec![Self::Ties(time.clone(), id), Self::Timed(Some(time))],
            (Some(time), Sort::Desc) => {
                vec![Self::Ties(time.clone(), id), Self::Timed(Some(time)), Self::Timeless(None)]
            }
        }
    }

    /// Whether all its records have one time, so that only their ids order them.
    pub const fn has_one_time(&self) -> bool {
        matches!(self, Self::Timeless(_) | Self::Ties(..))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Stretch {
        /// Whether `key` is in the stretch; ids are behind by `sort`.
        fn holds(&self, key: &OrderKey, sort: Sort) -> bool {
            let behind =
                |order: std::cmp::Ordering| (order == std::cmp::Ordering::Greater) == (sort == Sort::Asc);
            let id = |id: &String| *id != key.id && behind(key.id.cmp(id));
            match (self, &key.time) {
                (Self::Whole, _) | (Self::Timeless(None), None) | (Self::Timed(None), Some(_)) => true,
                (Self::Timeless(Some(after)), None) => id(after),
                (Self::Ties(time, after), Some(at)) => time == at && id(after),
                (Self::Timed(Some(time)), Some(at)) => time != at && behind(at.cmp(time)),
                (Self::Timeless(_), Some(_)) | (Self::Ties(..) | Self::Timed(_), None) => false,
            }
        }
    }

    fn key() -> impl Strategy<Value = OrderKey> {
        let time = prop::option::of(prop::sample::select(vec!["a", "b", "c"]));
        (time, prop::sample::select(vec!["1", "2", "3"]))
            .prop_map(|(time, id)| OrderKey { time: time.map(OrderTime::from_stored), id: id.to_owned() })
    }

    proptest! {
        #[test]
        fn stretches_hold_what_is_behind_and_each_key_once(after in key(), key in key(), descending: bool) {
            let sort = if descending { Sort::Desc } else { Sort::Asc };
            let holding = Stretch::behind(Some(&after), sort).iter().filter(|stretch| stretch.holds(&key, sort)).count();
            let is_behind = if descending { key < after } else { key > after };
            prop_assert_eq!(holding, usize::from(is_behind));
        }
    }
}
