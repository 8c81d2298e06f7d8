//! Looks for a query in one decoded text that arrives in pieces.

use std::ops::Range;

use super::excerpt::{CONTEXT_BYTES_MAX, Excerpt};
use super::needle::Query;
use super::reader::Sink;

/// Bytes that are collected before they are searched.
const STEP_BYTES: usize = 256 * 1024;

/// What was found in one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Around the first match.
    pub(crate) excerpt: Excerpt,
    /// Matches in the text, without overlap; at least 1.
    pub(crate) occurrences: u64,
}

/// A search in one text at a time. Holds some pieces and the context of a match, whatever the length of the text.
pub(crate) struct TextSearch<'q> {
    query: &'q Query,
    /// Bytes that have come and were not looked at.
    raw: Vec<u8>,
    /// The first bytes of the current text, once they have been looked at.
    head: Option<[u8; 5]>,
    /// The decoded end of what was looked at, as far as a match or an excerpt may reach back.
    held: String,
    state: State,
}

#[derive(Default)]
struct State {
    /// Every match that starts before this offset of the text at hand is known.
    searched: usize,
    /// Whether text before the text at hand was dropped.
    is_cut: bool,
    occurrences: u64,
    first: Option<First>,
}

enum First {
    /// A range of the text at hand; the text after it is still to come.
    At(Range<usize>),
    Shown(Excerpt),
}

impl<'q> TextSearch<'q> {
    /// Starts without a text.
    pub(crate) fn new(query: &'q Query) -> Self {
        Self { query, raw: Vec::new(), head: None, held: String::new(), state: State::default() }
    }

    /// The query.
    pub(crate) fn query(&self) -> &'q Query {
        self.query
    }

    /// Whether the current text is inline data: base64, where short words stand by chance.
    pub(crate) fn is_inline_data(&self) -> bool {
        let head = self.head.as_ref().map_or(self.raw.as_slice(), <[u8; 5]>::as_slice);
        head.starts_with(b"data:")
    }

    /// Forgets the current text.
    pub(crate) fn clear(&mut self) {
        self.raw.clear();
        self.head = None;
        self.held.clear();
        self.state = State::default();
    }

    /// Ends the current text; the next piece begins another one.
    pub(crate) fn finish(&mut self) -> Option<Found> {
        match std::str::from_utf8(&self.raw) {
            // The usual case needs no copy.
            Ok(text) if self.held.is_empty() => self.state.search(self.query, text, true),
            _ => {
                self.absorb(true);
                self.state.search(self.query, &self.held, true);
            }
        }
        let occurrences = self.state.occurrences;
        let first = self.state.first.take();
        self.clear();
        match first? {
            First::Shown(excerpt) => Some(Found { excerpt, occurrences }),
            First::At(_) => None,
        }
    }

    /// Moves `raw` to `held` as text. What is not UTF-8 becomes U+FFFD; a character that is not complete waits.
    fn absorb(&mut self, is_last: bool) {
        let whole = self.raw.len() - if is_last { 0 } else { incomplete_bytes(&self.raw) };
        self.held.push_str(&String::from_utf8_lossy(&self.raw[..whole]));
        self.raw.drain(..whole);
    }

    fn release(&mut self) {
        let needed = match &self.state.first {
            Some(First::At(found)) => found.start.min(self.state.searched),
            Some(First::Shown(_)) | None => self.state.searched,
        };
        let cut = self.held.floor_char_boundary(needed.saturating_sub(CONTEXT_BYTES_MAX));
        if cut > 0 {
            self.held.drain(..cut);
            self.state.shift(cut);
        }
    }
}

impl Sink for TextSearch<'_> {
    fn piece(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        if self.raw.len() > STEP_BYTES {
            self.head = self.head.or(self.raw.first_chunk().copied());
            self.absorb(false);
            self.state.search(self.query, &self.held, false);
            self.release();
        }
    }
}

impl State {
    /// Looks at `text` from `searched` on.
    fn search(&mut self, query: &Query, text: &str, is_last: bool) {
        let mut from = self.searched;
        if self.first.is_none()
            && let Some(found) = query.find(text, from)
        {
            from = found.end;
            self.occurrences = 1;
            self.first = Some(First::At(found));
        }
        if self.first.is_some() {
            for found in query.matches(text, from) {
                self.occurrences += 1;
                from = found.end;
            }
        }
        // A match that starts later than this may need bytes that are still to come.
        let open = text.floor_char_boundary(text.len().saturating_sub(query.bytes_max() - 1));
        self.searched = from.max(open);
        if let Some(First::At(found)) = &self.first
            && (is_last || text.len() - found.end >= CONTEXT_BYTES_MAX)
        {
            self.first = Some(First::Shown(Excerpt::around(text, found.clone(), self.is_cut, !is_last)));
        }
    }

    fn shift(&mut self, dropped: usize) {
        self.is_cut = true;
        self.searched -= dropped;
        if let Some(First::At(found)) = &mut self.first {
            *found = found.start - dropped..found.end - dropped;
        }
    }
}

/// Bytes at the end of `bytes` that begin a character and do not complete it, 0 to 3.
fn incomplete_bytes(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let tail = &bytes[bytes.len() - back..];
        if tail[0] & 0xc0 == 0x80 {
            continue;
        }
        let is_incomplete = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
        return if is_incomplete { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::excerpt::EXCERPT_CHARS_MAX;
    use super::*;

    fn in_pieces(query: &str, text: &[u8], size: usize) -> Option<Found> {
        let query = Query::new(query).unwrap();
        let mut search = TextSearch::new(&query);
        for piece in text.chunks(size) {
            search.piece(piece);
        }
        search.finish()
    }

    #[test]
    fn long_texts_give_what_short_ones_give() {
        // Joints of steps fall everywhere into the match and into the characters around it.
        for before in (STEP_BYTES - 40)..(STEP_BYTES + 8) {
            let text = format!("{}圧縮K縮{}", "x".repeat(before), "é".repeat(STEP_BYTES));
            let found = in_pieces("縮k縮", text.as_bytes(), 1000).unwrap();
            assert_eq!(found.occurrences, 1, "{before}");
            assert_eq!(found.excerpt.text.chars().count(), EXCERPT_CHARS_MAX, "{before}");
            let shown: String = found.excerpt.text.chars().skip(found.excerpt.match_start).take(3).collect();
            assert_eq!(shown, "縮K縮", "{before}");
        }
    }

    #[test]
    fn every_match_of_a_long_text_is_counted_once() {
        let text = "abc".repeat(STEP_BYTES);
        for size in [7, 1000, STEP_BYTES - 1, text.len()] {
            assert_eq!(in_pieces("CAB", text.as_bytes(), size).unwrap().occurrences, STEP_BYTES as u64 - 1);
        }
        let text = "a".repeat(STEP_BYTES * 3);
        assert_eq!(in_pieces("aaa", text.as_bytes(), 999).unwrap().occurrences, STEP_BYTES as u64);
    }

    #[test]
    fn bytes_that_are_not_text_hide_nothing_around_them() {
        for padding in [0, STEP_BYTES, 2 * STEP_BYTES + 1] {
            let mut text = vec![0xff; padding];
            text.extend_from_slice("\u{fffd}needle".as_bytes());
            text.push(0xe5);
            assert_eq!(in_pieces("NEEDLE\u{fffd}", &text, 777).unwrap().occurrences, 1, "{padding}");
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_find_the_same(text in "[ab圧é😀]{0,200}", query in "[ab圧é😀]{1,3}", size in 1_usize..9) {
            let whole = in_pieces(&query, text.as_bytes(), usize::MAX);
            prop_assert_eq!(in_pieces(&query, text.as_bytes(), size), whole);
        }
    }
}
