//! Reads JSON of any size in bounded memory: tells where each value stands, and keeps short values only.
//!
//! The rows that need it are rare and large (a message of 461 MiB has been reported), so this reads through a buffer and never holds a
//! value. Strict as RFC 8259 except that the bytes of strings are not checked to be UTF-8.

use std::io::{self, Read};
use std::ops::Range;

mod tokens;

use tokens::Tokens;

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 256;

/// Longest key or scalar that is kept, in bytes; of a longer one only the place is told.
pub(crate) const KEPT_BYTES_MAX: usize = 256;

/// Why a value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    /// Not JSON, from this byte on.
    #[error("not JSON from byte {0} on")]
    Malformed(u64),
    /// Nested deeper than [`DEPTH_MAX`].
    #[error("nested too deeply")]
    TooDeep,
    /// The bytes cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One step from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A member of an object, by its decoded key; `None` for a key longer than [`KEPT_BYTES_MAX`].
    Key(Option<Box<str>>),
    /// An element of an array.
    Index(u32),
}

impl Step {
    pub(crate) fn is(&self, key: &str) -> bool {
        matches!(self, Self::Key(Some(found)) if found.as_ref() == key)
    }
}

/// Whether `path` is a chain of exactly these keys.
pub(crate) fn is_path(path: &[Step], keys: &[&str]) -> bool {
    path.len() == keys.len() && path.iter().zip(keys).all(|(step, key)| step.is(key))
}

/// A value that was met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Met {
    /// Bytes it takes, with its quotes or brackets.
    pub(crate) range: Range<u64>,
    pub(crate) value: Value,
}

/// What kind of value was met, and the value itself where it is short.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A string; decoded where it is at most [`KEPT_BYTES_MAX`] bytes long.
    Text(Option<Box<str>>),
    /// A number, as spelled; `None` for an absurdly long one.
    Number(Option<Box<str>>),
    Bool(bool),
    Null,
    Object,
    Array,
}

impl Value {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_deref(),
            Self::Number(_) | Self::Bool(_) | Self::Null | Self::Object | Self::Array => None,
        }
    }

    /// The number as milliseconds; fractions are cut off.
    pub(crate) fn millis(&self) -> Option<i64> {
        let Self::Number(Some(spelled)) = self else { return None };
        spelled.parse().ok().or_else(|| {
            let number: f64 = spelled.parse().ok()?;
            #[expect(clippy::cast_possible_truncation, reason = "saturates, which is as good as any time")]
            number.is_finite().then_some(number as i64)
        })
    }
}

/// Reads one JSON value to its end and calls `visit` with the path and place of every value in it: scalars when they are read, objects
/// and arrays when they end. The whole value is visited last, with an empty path.
///
/// # Errors
/// [`JsonError`] where the bytes are not one JSON value.
pub(crate) fn walk(source: impl Read, mut visit: impl FnMut(&[Step], Met)) -> Result<(), JsonError> {
    let mut tokens = Tokens::new(source);
    let mut path: Vec<Step> = Vec::new();
    let mut open: Vec<u64> = Vec::new();
    loop {
        // At a value.
        let start = tokens.skip_space()?;
        let opener = tokens.peek()?;
        let is_container = matches!(opener, Some(b'{' | b'['));
        if is_container {
            if open.len() == DEPTH_MAX {
                return Err(JsonError::TooDeep);
            }
            tokens.take()?;
            tokens.skip_space()?;
            let is_object = opener == Some(b'{');
            if tokens.peek()? != Some(if is_object { b'}' } else { b']' }) {
                open.push(start);
                path.push(if is_object { Step::Key(tokens.key()?) } else { Step::Index(0) });
                continue;
            }
            let end = tokens.take()?;
            let value = if is_object { Value::Object } else { Value::Array };
            visit(&path, Met { range: start..end, value });
        } else {
            let value = tokens.scalar()?;
            visit(&path, Met { range: start..tokens.position(), value });
        }
        // After a value: to the next one, or out of what ends here.
        loop {
            let Some(step) = path.last_mut() else { return tokens.end() };
            tokens.skip_space()?;
            let next = tokens.peek()?;
            match (next, step) {
                (Some(b','), step) => {
                    tokens.take()?;
                    tokens.skip_space()?;
                    match step {
                        Step::Key(key) => *key = tokens.key()?,
                        Step::Index(index) => *index = index.saturating_add(1),
                    }
                    break;
                }
                (Some(b'}'), Step::Key(_)) | (Some(b']'), Step::Index(_)) => {
                    let end = tokens.take()?;
                    path.pop();
                    let value = if next == Some(b'}') { Value::Object } else { Value::Array };
                    let start = open.pop().unwrap_or(0);
                    visit(&path, Met { range: start..end, value });
                }
                _ => return Err(JsonError::Malformed(tokens.position())),
            }
        }
    }
}

/// Decodes the string whose bytes `source` yields, quotes included, and hands it to `each` in pieces. Lone surrogates and bytes that
/// are not UTF-8 become U+FFFD.
///
/// # Errors
/// [`JsonError`] where the bytes are not a JSON string, and what `each` returns.
pub(crate) fn decode_string(
    source: impl Read,
    each: impl FnMut(&str) -> io::Result<()>,
) -> Result<(), JsonError> {
    Tokens::new(source).decode_string(each)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(json: &str) -> Result<Vec<(String, String)>, String> {
        let mut found = Vec::new();
        let shown = |path: &[Step]| {
            let steps: Vec<String> = path
                .iter()
                .map(|step| match step {
                    Step::Key(key) => key.as_deref().unwrap_or("(long)").to_owned(),
                    Step::Index(index) => index.to_string(),
                })
                .collect();
            steps.join("/")
        };
        walk(json.as_bytes(), |path, met| {
            let range = usize::try_from(met.range.start).unwrap()..usize::try_from(met.range.end).unwrap();
            found.push((shown(path), json[range].to_owned()));
        })
        .map_err(|error| error.to_string())?;
        Ok(found)
    }

    #[test]
    fn every_value_is_met_with_its_path_and_place() {
        let found = paths(r#" {"a" : [1, {"b\u0063":"x\"y"} ,[]], "d":null}"#).unwrap();
        let expected = [
            ("a/0", "1"),
            ("a/1/bc", r#""x\"y""#),
            ("a/1", r#"{"b\u0063":"x\"y"}"#),
            ("a/2", "[]"),
            ("a", r#"[1, {"b\u0063":"x\"y"} ,[]]"#),
            ("d", "null"),
        ];
        let found: Vec<(&str, &str)> =
            found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(found[..expected.len()], expected);
        assert_eq!(found[expected.len()].0, "");
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\":}",
            "{\"a\"}",
            "{a:1}",
            "[1 2]",
            "]",
            "nul",
            "truex",
            "01",
            "1.",
            "+1",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "1 2",
            "[}",
            "{\"a\":1]",
            "{,}",
            "[,1]",
            "-",
            "1e",
            "{\"a\":1,}",
        ] {
            assert!(paths(bad).is_err(), "{bad}");
        }
        assert!(paths(&("[".repeat(300) + &"]".repeat(300))).is_err());
        assert!(paths(&("[".repeat(256) + &"]".repeat(256))).is_ok());
    }

    fn decoded(json: &str) -> Result<String, JsonError> {
        let mut text = String::new();
        decode_string(json.as_bytes(), |piece| {
            text.push_str(piece);
            Ok(())
        })?;
        Ok(text)
    }

    #[test]
    fn surrogates_pair_or_are_replaced() {
        assert_eq!(decoded(r#""\ud83d\ude00|\ud83d|\ude00\n\/""#).unwrap(), "😀|\u{fffd}|\u{fffd}\n/");
        assert_eq!(decoded(r#""\ud83d\ud83d\ude00""#).unwrap(), "\u{fffd}😀");
    }

    fn arbitrary_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "\\PC{0,20}".prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_valid_value_is_walked_and_every_string_decoded(value in arbitrary_json()) {
            let json = serde_json::to_string_pretty(&value).unwrap();
            let mut whole = None;
            let mut strings = Vec::new();
            walk(json.as_bytes(), |path, met| {
                if path.is_empty() {
                    whole = Some(met.range.clone());
                }
                if matches!(met.value, Value::Text(_)) {
                    strings.push(met.range);
                }
            })
            .unwrap();
            prop_assert_eq!(whole, Some(0..json.len() as u64));
            for range in strings {
                let text = &json[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
                let expected: String = serde_json::from_str(text).unwrap();
                prop_assert_eq!(decoded(text).unwrap(), expected);
            }
        }

        #[test]
        fn nothing_is_accepted_that_serde_json_refuses(text in "[\\[\\]{}:,\"0-9a-z\\\\ .eE+-]{0,24}") {
            let ours = walk(text.as_bytes(), |_, _| {}).is_ok();
            // serde_json refuses numbers beyond f64, which are JSON.
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(ours, theirs, "{}", text);
        }
    }
}
