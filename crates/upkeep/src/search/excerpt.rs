//! The piece of text around a match that is shown.

use std::ops::Range;

use serde::Serialize;

/// Longest excerpt in characters, ellipses included (P11).
pub const EXCERPT_CHARS_MAX: usize = 320;

/// Characters beside a match that an excerpt can use at most.
const CONTEXT_CHARS_MAX: usize = EXCERPT_CHARS_MAX;

/// Bytes before a match that an excerpt can use at most.
pub(super) const CONTEXT_BYTES_MAX: usize = CONTEXT_CHARS_MAX * 4;

/// Text around a match, exactly as stored but for an ellipsis (one character) at an end that is cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// At most [`EXCERPT_CHARS_MAX`] characters.
    pub text: String,
    /// Where the match begins, in characters of `text`.
    pub match_start: usize,
    /// Where it ends, in characters of `text`, exclusive. A match longer than an excerpt is cut.
    pub match_end: usize,
}

impl Excerpt {
    /// Cuts the text around the match `found` out of `text`; `cut_before` and `cut_after` say that more text stands beyond its ends.
    pub(super) fn around(text: &str, found: Range<usize>, cut_before: bool, cut_after: bool) -> Self {
        let matched = &text[found.clone()];
        let matched_chars = matched.chars().count().min(EXCERPT_CHARS_MAX - 2);
        let room = EXCERPT_CHARS_MAX - 2 - matched_chars;
        let before_all = text[..found.start].chars().rev().take(room).count();
        let after_all = text[found.end..].chars().take(room).count();
        let before = before_all.min((room / 2).max(room - after_all));
        let after = after_all.min(room - before);

        let start =
            text[..found.start].char_indices().rev().take(before).last().map_or(found.start, |(at, _)| at);
        let end_from = |from: usize, chars: usize| {
            text[from..].char_indices().nth(chars).map_or(text.len(), |(at, _)| from + at)
        };
        let match_end = end_from(found.start, matched_chars).min(found.end);
        let end = if match_end < found.end { match_end } else { end_from(found.end, after) };

        let leading = cut_before || start > 0;
        let trailing = cut_after || end < text.len();
        let mut shown = String::with_capacity(end - start + 6);
        if leading {
            shown.push('…');
        }
        shown.push_str(&text[start..end]);
        if trailing {
            shown.push('…');
        }
        let match_start = usize::from(leading) + before;
        Self { text: shown, match_start, match_end: match_start + matched_chars }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(excerpt: &Excerpt) -> String {
        let length = excerpt.match_end - excerpt.match_start;
        excerpt.text.chars().skip(excerpt.match_start).take(length).collect()
    }

    #[test]
    fn short_text_is_shown_whole() {
        let excerpt = Excerpt::around("明天下午三点开项目评审会议", 27..33, false, false);
        assert_eq!(excerpt.text, "明天下午三点开项目评审会议");
        assert_eq!((excerpt.match_start, excerpt.match_end), (9, 11));
        assert_eq!(shown(&excerpt), "评审");
    }

    #[test]
    fn long_text_is_cut_at_character_boundaries_and_never_too_long() {
        for (before, after) in
            [(0, 1000), (1000, 0), (1000, 1000), (10, 1000), (1000, 10), (317, 0), (318, 0)]
        {
            let text = format!("{}圧縮{}", "é".repeat(before), "数".repeat(after));
            let start = before * 2;
            let excerpt = Excerpt::around(&text, start..start + 6, false, false);
            let chars = excerpt.text.chars().count();
            assert!(chars <= EXCERPT_CHARS_MAX, "{before} {after}: {chars}");
            assert!(chars >= EXCERPT_CHARS_MAX.min(before + after + 2) - 2, "{before} {after}: {chars}");
            assert_eq!(shown(&excerpt), "圧縮", "{before} {after}");
            let shown_before = excerpt.text.chars().take(excerpt.match_start).filter(|&c| c == 'é').count();
            assert_eq!(excerpt.text.starts_with('…'), shown_before < before, "{before} {after}");
        }
    }

    #[test]
    fn a_match_longer_than_an_excerpt_is_cut() {
        let text = "x".repeat(1000);
        let excerpt = Excerpt::around(&text, 100..900, true, true);
        assert_eq!(excerpt.text.chars().count(), EXCERPT_CHARS_MAX);
        assert_eq!((excerpt.match_start, excerpt.match_end), (1, 319));
    }
}
