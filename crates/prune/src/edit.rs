//! Replacing ranges of a row's bytes and leaving every other byte alone (P5).

use std::borrow::Cow;
use std::ops::Range;

/// Replacements of ranges of one text, none of which overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits<'a>(Vec<(Range<usize>, Cow<'a, [u8]>)>);

impl<'a> Edits<'a> {
    /// Puts `with` in the place of `range`.
    pub(crate) fn replace(&mut self, range: Range<usize>, with: impl Into<Cow<'a, [u8]>>) {
        self.0.push((range, with.into()));
    }

    /// Takes those of `entries` (all members of one object or all elements of one array, in order) for which `goes` holds, each with
    /// one of the commas beside it: the one before it where something before it stays, else the one after it.
    pub(crate) fn remove(&mut self, entries: &[Range<usize>], goes: impl Fn(usize) -> bool) {
        let mut stayed = false;
        for (index, entry) in entries.iter().enumerate() {
            if !goes(index) {
                stayed = true;
                continue;
            }
            let before = index.checked_sub(1).and_then(|index| entries.get(index)).filter(|_| stayed);
            let range = match (before, entries.get(index + 1)) {
                (Some(before), _) => before.end..entry.end,
                (None, Some(after)) => entry.start..after.start,
                (None, None) => entry.clone(),
            };
            self.replace(range, &b""[..]);
        }
    }

    /// Whether nothing is replaced.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the replacements made.
    pub(crate) fn apply(mut self, data: &[u8]) -> Vec<u8> {
        self.0.sort_by_key(|(range, _)| range.start);
        let removed: usize = self.0.iter().map(|(range, _)| range.len()).sum();
        let added: usize = self.0.iter().map(|(_, with)| with.len()).sum();
        let mut out = Vec::with_capacity((data.len() + added).saturating_sub(removed));
        let mut at = 0;
        for (range, with) in &self.0 {
            debug_assert!(range.start >= at, "replacements overlap");
            out.extend_from_slice(data.get(at..range.start).unwrap_or_default());
            out.extend_from_slice(with);
            at = range.end;
        }
        out.extend_from_slice(data.get(at..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_entry_takes_one_comma() {
        let data = b"[ a , b,c , d ]";
        let entries = [2..3, 6..7, 8..9, 12..13];
        let cases: [(&[usize], &str); 7] = [
            (&[], "[ a , b,c , d ]"),
            (&[0], "[ b,c , d ]"),
            (&[3], "[ a , b,c ]"),
            (&[1, 2], "[ a , d ]"),
            (&[0, 1], "[ c , d ]"),
            (&[0, 2], "[ b , d ]"),
            (&[0, 1, 2, 3], "[  ]"),
        ];
        for (gone, left) in cases {
            let mut edits = Edits::default();
            edits.remove(&entries, |index| gone.contains(&index));
            assert_eq!(String::from_utf8(edits.apply(data)).unwrap(), left, "{gone:?}");
        }
    }
}
