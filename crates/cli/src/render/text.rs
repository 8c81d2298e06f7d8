//! Stored text made safe for a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` on one line with everything escaped that a terminal could take for a command: control characters (C0, DEL, C1) and the
/// characters that change the direction of what follows. A title with an escape sequence in it cannot repaint the screen.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// As [`printable`], but line breaks and tabs stay: for bodies of messages.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// Whether a terminal could take `character` for more than a glyph.
pub(crate) const fn is_active(character: char) -> bool {
    matches!(character,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        // Direction marks, embeddings, overrides and isolates; line and paragraph separators; byte order mark.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |character: char| is_active(character) && !stays(character);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            _ if !is_escaped(character) => safe.push(character),
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            // Writing to a string does not fail.
            _ => write!(safe, "\\u{{{:x}}}", u32::from(character)).unwrap_or_default(),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_could_obey_is_escaped() {
        let cases = [
            ("plain 数据 é", "plain 数据 é"),
            ("\x1b[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\r\nb\tc\x07", "a\\r\\nb\\tc\\u{7}"),
            ("abc\u{202e}txt.exe", "abc\\u{202e}txt.exe"),
        ];
        for (stored, shown) in cases {
            assert_eq!(printable(stored), shown);
        }
        assert_eq!(printable_lines("a\n\tb\x1b"), "a\n\tb\\u{1b}");
    }
}
