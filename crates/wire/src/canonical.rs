//! Canonical JSON (RFC 8785) and the revisions made of it (P3).
//!
//! The canonical form has no white space, members sorted by the UTF-16 code units of their keys, numbers as ECMAScript prints them,
//! and strings with the shortest escapes. It is written from the ranges of the source text: no tree of values is built, a string
//! without a superfluous escape is copied as it stands, and members are moved only where they are out of order.
//!
//! # What is refused
//! A revision is compared between this program and JavaScript, so anything the two could read differently fails closed:
//!
//! - half of a surrogate pair, in a value or in a key (`JSON.parse` keeps it, UTF-8 cannot hold it);
//! - two members of one object with the same key after decoding (`JSON.parse` keeps the last, others the first);
//! - a number that is not finite as a binary64 (`1e400`), or that is not zero and becomes zero (`1e-400`);
//! - an integer written without fraction and exponent whose value a binary64 cannot hold (`9007199254740993`), since some readers
//!   take it as a 64-bit integer, unless it is written just as ECMAScript prints the nearest binary64 (`12345678901234567000`): the
//!   canonical form is always accepted. More than 38 digits are refused without a look at the value;
//! - nesting beyond [`crate::limits::JSON_DEPTH_MAX`], bytes that are not UTF-8, anything that RFC 8259 does not allow.
//!
//! # What is accepted although its spelling is lost
//! `-0` is `0`. A number with a fraction or an exponent is the nearest binary64, as every reader takes it: `0.10` is `0.1`, `1e21`
//! is `1e+21`, `9007199254740993.0` is `9007199254740992`. Integers of 2^53 and beyond that a binary64 holds exactly are accepted.
//! Superfluous escapes (`\/`, `\u00e9`) are the characters they stand for.
//!
//! The vectors in `schemas/vectors/canonical.json` hold each of these cases; `schemas/vectors/canonical.mjs` is the same in JavaScript.

mod error;
mod key;
mod number;
mod string;
mod writer;

use headwater_model::ContentRevision;
use sha2::{Digest, Sha256};

pub use error::{CanonicalError, CanonicalErrorKind};

use writer::{Sink, Writer};

/// The canonical form of the JSON document `json`.
///
/// # Errors
/// [`CanonicalError`] where `json` is not JSON or is one of the refused cases of this module.
pub fn canonicalize(json: &[u8]) -> Result<Vec<u8>, CanonicalError> {
    let mut writer = Writer::new(Keep, json.len());
    writer.document(json)?;
    Ok(writer.finish().1)
}

/// The revision of a message's content: SHA-256 over the canonical form of `json`, which for a 2.x row is the text of its `content`
/// array (P3). Holds at most the canonical form of the largest element of the outermost array in memory.
///
/// # Errors
/// As [`canonicalize`].
pub fn content_revision(json: &[u8]) -> Result<ContentRevision, CanonicalError> {
    let mut writer = Writer::new(Hash(Sha256::new()), json.len().min(BUFFER_BYTES));
    writer.document(json)?;
    Ok(revision(writer))
}

/// The revision of a 1.x message: SHA-256 over the canonical form of the array of its parts in id order, where each part is its
/// stored object with the member `id` added (P3). A stored object that has a member `id` already is accepted where it is the same
/// text, and refused otherwise.
///
/// # Errors
/// As [`canonicalize`], with offsets within the part; [`CanonicalErrorKind::NotAnObject`] and [`CanonicalErrorKind::OtherId`].
pub fn parts_revision<'p>(
    parts: impl IntoIterator<Item = (&'p str, &'p [u8])>,
) -> Result<ContentRevision, CanonicalError> {
    let mut writer = Writer::new(Hash(Sha256::new()), BUFFER_BYTES);
    writer.put(b"[");
    for (index, (id, part)) in parts.into_iter().enumerate() {
        if index > 0 {
            writer.put(b",");
        }
        writer.part(id, part)?;
        writer.flush();
    }
    writer.put(b"]");
    Ok(revision(writer))
}

/// First size of the buffer that is hashed: large enough for most parts, small enough for one-kilobyte contents.
const BUFFER_BYTES: usize = 16 << 10;

fn revision(writer: Writer<Hash>) -> ContentRevision {
    let (mut hash, rest) = writer.finish();
    hash.0.update(&rest);
    ContentRevision::from_bytes(hash.0.finalize().into())
}

/// Keeps everything in the buffer.
struct Keep;

impl Sink for Keep {
    fn take(&mut self, _buffer: &mut Vec<u8>) {}
}

/// Hashes and forgets.
struct Hash(Sha256);

impl Sink for Hash {
    fn take(&mut self, buffer: &mut Vec<u8>) {
        self.0.update(&*buffer);
        buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> Result<String, &'static str> {
        let bytes = canonicalize(json.as_bytes()).map_err(|error| error.kind.name())?;
        assert_eq!(content_revision(json.as_bytes()).unwrap(), content_revision(&bytes).unwrap(), "{json}");
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn documents_have_one_form() {
        let cases = [
            (" [ ] ", "[]"),
            ("{}", "{}"),
            ("\"\"", "\"\""),
            (r#"{"b":1,"a":[{"d":[],"c":{}}]}"#, r#"{"a":[{"c":{},"d":[]}],"b":1}"#),
            (r#"{"10":1,"9":2,"1":3}"#, r#"{"1":3,"10":1,"9":2}"#),
            (r#""\/\u00e9\u0022\u005c\u000a\u001F\ud83d\ude00""#, "\"/é\\\"\\\\\\n\\u001f😀\""),
            ("{\"\u{fb33}\":1,\"\u{1f600}\":2,\"\\u20ac\":3}", "{\"€\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}"),
            ("[true,false,null,-0,1E2]", "[true,false,null,0,100]"),
        ];
        for (json, form) in cases {
            assert_eq!(canonical(json).as_deref(), Ok(form), "{json}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        let cases = [
            (r#"{"a":1,"a":2}"#, "repeated-key"),
            (r#"{"a":1,"b":0,"\u0061":2}"#, "repeated-key"),
            (r#"["\ud800"]"#, "lone-surrogate"),
            (r#"{"\udfff":1}"#, "lone-surrogate"),
            ("9007199254740993", "lossy-number"),
            ("1e400", "lossy-number"),
            ("[1,]", "syntax"),
            (r#"{"a":1,}"#, "syntax"),
            ("[1] 2", "syntax"),
            ("", "syntax"),
            ("01", "syntax"),
        ];
        for (json, name) in cases {
            assert_eq!(canonical(json), Err(name), "{json}");
        }
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(canonical(&deep(256)).is_ok());
        assert_eq!(canonical(&deep(257)), Err("too-deep"));
        assert_eq!(canonicalize(b"[\"\xff\"]").map_err(|error| error.offset), Err(2));
    }

    #[test]
    fn parts_are_hashed_with_their_ids() {
        let revision = |parts: &[(&str, &str)]| {
            parts_revision(parts.iter().map(|(id, part)| (*id, part.as_bytes())))
                .map_err(|error| error.kind.name())
        };
        let whole = content_revision(br#"[{"id":"prt_1","text":"x","type":"text"},{"id":"prt_2"}]"#).unwrap();
        for first in [
            r#"{"type":"text","text":"x"}"#,
            r#"{"text":"x","type":"text"}"#,
            r#"{"id":"prt_1","text":"x","type":"text"}"#,
            r#"{"type":"text","text":"x","\u0069d":"prt_1"}"#,
        ] {
            assert_eq!(revision(&[("prt_1", first), ("prt_2", " {} ")]), Ok(whole), "{first}");
        }
        assert_eq!(revision(&[]), Ok(content_revision(b"[]").unwrap()));
        assert_eq!(revision(&[("prt_1", r#"{"id":"prt_2"}"#)]), Err("other-id"));
        assert_eq!(revision(&[("prt_1", r#"{"x":1,"id":1}"#)]), Err("other-id"));
        assert_eq!(revision(&[("prt_1", r#"{"z":1,"id":"prt_1","id":"prt_1"}"#)]), Err("repeated-key"));
        assert_eq!(revision(&[("prt_1", "[]")]), Err("not-an-object"));
        assert_eq!(revision(&[("prt_1", "")]), Err("syntax"));
    }
}
