//! Which stretches of a table hold survivors, so that leaf pages without any are never read.

use roaring::RoaringTreemap;

/// A run of dropped rows of at least this length is jumped over; a shorter one is stepped through and filtered by rowid. A leaf page
/// holds four to eight event rows (SQLite keeps at least 489 bytes of each local), and a jump costs about as much as reading two.
const JUMP_ROWS_MIN: u64 = 16;

/// Rowids as they are ordered in the table.
fn signed(bits: u64) -> i64 {
    bits.cast_signed()
}

/// The first and last rowid of each stretch that may hold survivors, ascending and disjoint.
pub(crate) fn stretches(dropped: &RoaringTreemap) -> impl Iterator<Item = (i64, i64)> {
    let sign = 1_u64 << 63;
    let has_negative = dropped.max().is_some_and(|last| last >= sign);
    let negative =
        has_negative.then(|| dropped.iter().skip_while(move |id| *id < sign)).into_iter().flatten();
    let positive = dropped.iter().take_while(move |id| *id < sign);
    Stretches { dropped: negative.chain(positive).map(signed).peekable(), next: Some(i64::MIN) }
}

struct Stretches<I: Iterator<Item = i64>> {
    dropped: std::iter::Peekable<I>,
    next: Option<i64>,
}

impl<I: Iterator<Item = i64>> Iterator for Stretches<I> {
    type Item = (i64, i64);

    fn next(&mut self) -> Option<(i64, i64)> {
        let mut first = self.next.take()?;
        while let Some(start) = self.dropped.next() {
            let mut end = start;
            let mut length = 1_u64;
            while let Some(id) = self.dropped.next_if(|id| end.checked_add(1) == Some(*id)) {
                end = id;
                length += 1;
            }
            if length < JUMP_ROWS_MIN {
                continue;
            }
            let before = start.checked_sub(1).filter(|last| *last >= first).map(|last| (first, last));
            let Some(after) = end.checked_add(1) else { return before };
            if before.is_some() {
                self.next = Some(after);
                return before;
            }
            first = after;
        }
        Some((first, i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: impl IntoIterator<Item = i64>) -> Vec<(i64, i64)> {
        stretches(&ids.into_iter().map(i64::cast_unsigned).collect()).collect()
    }

    #[test]
    fn short_runs_are_stepped_through_and_long_ones_jumped_over() {
        assert_eq!(of([]), [(i64::MIN, i64::MAX)]);
        assert_eq!(of([1, 2, 3, 9]), [(i64::MIN, i64::MAX)]);
        assert_eq!(of(10..30), [(i64::MIN, 9), (30, i64::MAX)]);
        assert_eq!(of((10..30).chain([40]).chain(50..70)), [(i64::MIN, 9), (30, 49), (70, i64::MAX)]);
    }

    #[test]
    fn negative_rowids_come_first_and_runs_may_cross_zero() {
        assert_eq!(of(-20..20), [(i64::MIN, -21), (20, i64::MAX)]);
        assert_eq!(of((-100..-80).chain(5..7)), [(i64::MIN, -101), (-80, i64::MAX)]);
    }

    #[test]
    fn runs_at_the_ends_leave_nothing_beyond() {
        assert_eq!(of(i64::MIN..i64::MIN + 20), [(i64::MIN + 20, i64::MAX)]);
        assert_eq!(of((i64::MAX - 19..i64::MAX).chain([i64::MAX])), [(i64::MIN, i64::MAX - 20)]);
    }
}
