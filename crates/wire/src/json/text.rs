//! Strings of a document before they are decoded.

use std::borrow::Cow;

/// A string of a document: what stands between its quotes, checked but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    pub(super) raw: &'a str,
    pub(super) escaped: bool,
}

/// A string holds half of a surrogate pair, which is no character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lone surrogate at byte {offset} of the string")]
pub struct LoneSurrogate {
    /// Offset of the escape in bytes from the opening quote's successor.
    pub offset: usize,
}

impl<'a> Text<'a> {
    /// The bytes between the quotes, escapes and all.
    pub const fn raw(self) -> &'a str {
        self.raw
    }

    /// Whether the string holds an escape sequence.
    pub const fn is_escaped(self) -> bool {
        self.escaped
    }

    /// Whether the decoded string equals `name`. A lone surrogate equals nothing.
    pub fn is(self, name: &str) -> bool {
        if self.escaped { self.decode().is_ok_and(|text| text == name) } else { self.raw == name }
    }

    /// Whether the decoded string begins with `head`. Decodes no more than it must.
    pub fn starts_with(self, head: &str) -> bool {
        if !self.escaped {
            return self.raw.starts_with(head);
        }
        let mut characters = Characters::new(self.raw);
        head.chars().all(|wanted| characters.next() == Some(Ok(wanted)))
    }

    /// The string that is meant.
    ///
    /// # Errors
    /// [`LoneSurrogate`] where an escape names half of a pair.
    pub fn decode(self) -> Result<Cow<'a, str>, LoneSurrogate> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.raw));
        }
        Characters::new(self.raw).collect::<Result<String, _>>().map(Cow::Owned)
    }
}

/// The characters of a checked string, decoded one by one.
pub(crate) struct Characters<'a> {
    raw: &'a str,
    at: usize,
}

impl<'a> Characters<'a> {
    pub(crate) const fn new(raw: &'a str) -> Self {
        Self { raw, at: 0 }
    }

    /// Decodes the escape whose backslash stands at `self.at` and moves behind it.
    fn escape(&mut self) -> Result<char, LoneSurrogate> {
        let start = self.at;
        let letter = self.raw.as_bytes().get(start + 1).copied().unwrap_or_default();
        self.at = start + 2;
        Ok(match letter {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(start),
            other => char::from(other),
        })
    }

    fn unicode(&mut self, start: usize) -> Result<char, LoneSurrogate> {
        let lone = LoneSurrogate { offset: start };
        let unit = hex4(self.raw, start + 2).ok_or(lone)?;
        self.at = start + 6;
        if !(0xD800..0xE000).contains(&unit) {
            return char::from_u32(unit).ok_or(lone);
        }
        let low = self
            .raw
            .get(self.at..self.at + 2)
            .filter(|head| *head == "\\u")
            .and_then(|_| hex4(self.raw, self.at + 2));
        match low {
            Some(low) if unit < 0xDC00 && (0xDC00..0xE000).contains(&low) => {
                self.at += 6;
                char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)).ok_or(lone)
            }
            _ => Err(lone),
        }
    }
}

/// The value of four hexadecimal digits at `at`.
fn hex4(raw: &str, at: usize) -> Option<u32> {
    raw.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok())
}

impl Iterator for Characters<'_> {
    type Item = Result<char, LoneSurrogate>;

    fn next(&mut self) -> Option<Self::Item> {
        let character = self.raw.get(self.at..)?.chars().next()?;
        if character == '\\' {
            return Some(self.escape());
        }
        self.at += character.len_utf8();
        Some(Ok(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Reader;

    fn text(json: &str) -> Text<'_> {
        Reader::new(json.as_bytes()).string().unwrap()
    }

    #[test]
    fn escapes_decode_to_what_they_mean() {
        let cases = [
            (r#""""#, ""),
            (r#""a\/b""#, "a/b"),
            (r#""\b\f\n\r\t\"\\""#, "\u{8}\u{c}\n\r\t\"\\"),
            (r#""\u00e9\u00E9é""#, "ééé"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\u2028\uffff""#, "\u{2028}\u{ffff}"),
        ];
        for (json, meant) in cases {
            assert_eq!(text(json).decode().as_deref(), Ok(meant), "{json}");
            assert!(text(json).is(meant), "{json}");
            assert!(text(json).starts_with(meant), "{json}");
        }
    }

    #[test]
    fn half_a_pair_is_refused_with_its_place() {
        let cases = [
            (r#""ab\ud800""#, 2),
            (r#""\udc00""#, 0),
            (r#""\ud800\ud800""#, 0),
            (r#""\ud800A""#, 0),
            (r#""\ud800\n""#, 0),
        ];
        for (json, offset) in cases {
            assert_eq!(text(json).decode(), Err(LoneSurrogate { offset }), "{json}");
            assert!(!text(json).is("x"), "{json}");
        }
    }
}
