//! Ids, times, text and JSON of the sample, from a seed.

use std::fmt::Write;

use headwater_model::UnixMillis;
use serde::Serialize;

/// Makes the values of one session. Equal seed and start give equal values.
pub(super) struct Maker {
    state: u64,
    clock: UnixMillis,
    ids: i64,
}

const WORDS: &[&str] = &[
    "queue", "retry", "buffer", "parser", "session", "table", "module", "branch", "commit", "request",
    "timeout", "cache", "worker", "index", "layout", "window", "schema", "token", "stream", "socket",
    "builder", "handler", "fixture", "naïve", "façade", "résumé", "数据", "結果",
];

impl Maker {
    pub(super) const fn new(seed: u64, start: UnixMillis) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d, clock: start, ids: 0 }
    }

    /// `SplitMix64` (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `below` - 1.
    pub(super) fn below(&mut self, below: usize) -> usize {
        usize::try_from(self.next() % (below as u64)).unwrap_or(0)
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    /// The next instant, 40 ms after the one before.
    pub(super) fn tick(&mut self) -> i64 {
        self.clock = self.clock.minus_ms(-40);
        self.clock.get()
    }

    /// An id as OpenCode makes them: the time in 12 hex digits (inverted for sessions), then 14 base62 characters (fact A2).
    pub(super) fn id(&mut self, prefix: &str) -> String {
        const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        self.ids += 1;
        let time = ((self.clock.get() << 12) + (self.ids & 0xfff)) & 0xffff_ffff_ffff;
        let time = if prefix == "ses" { 0xffff_ffff_ffff - time } else { time };
        let tail: String = (0..14).map(|_| char::from(BASE62[self.below(62)])).collect();
        format!("{prefix}_{time:012x}{tail}")
    }

    /// 40 hex digits.
    pub(super) fn hash(&mut self) -> String {
        format!("{:016x}{:016x}{:08x}", self.next(), self.next(), self.below(1 << 32))
    }

    /// Sentences of about `bytes` bytes.
    pub(super) fn prose(&mut self, bytes: usize) -> String {
        let mut text = String::from("The");
        while text.len() < bytes {
            text.push(' ');
            text.push_str(self.word());
            if self.below(11) == 0 {
                text.push_str(".\nThen the");
            }
        }
        text.push('.');
        text
    }

    /// Lines as a test run prints them, about `bytes` bytes.
    pub(super) fn output(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 80);
        while text.len() < bytes {
            let [module, name, last] = [self.word(), self.word(), self.word()];
            let result = if self.below(40) == 0 { "FAILED" } else { "ok" };
            writing(writeln!(text, "test {module}::{name}_{last}_{:04} ... {result}", self.below(10_000)));
        }
        text
    }

    /// A unified diff of `file`, about `bytes` bytes.
    pub(super) fn patch(&mut self, file: &str, bytes: usize) -> String {
        let mut text = format!("--- a/{file}\n+++ b/{file}\n@@ -1,40 +1,44 @@\n");
        while text.len() < bytes {
            let sign = [" ", "+", "-"][self.below(3)];
            let [left, right] = [self.word(), self.word()];
            writing(writeln!(text, "{sign}    let {left} = self.{right}({})?;", self.below(100)));
        }
        text
    }

    /// Base64 of nothing in particular, `bytes` long, as the body of a `data:` URL.
    pub(super) fn base64(&mut self, bytes: usize) -> String {
        const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..bytes).map(|_| char::from(BASE64[self.below(64)])).collect()
    }
}

/// A JSON object whose members stand in the order in which they are added, as OpenCode writes them: `type` and `status` come first.
#[derive(Clone)]
pub(super) struct Object(String);

impl Object {
    pub(super) const fn new() -> Self {
        Self(String::new())
    }

    /// The same with one more member.
    pub(super) fn with(self, key: &str, value: impl Serialize) -> Self {
        // Strings, numbers and lists of them always become JSON.
        self.with_json(key, &serde_json::to_string(&value).unwrap_or_default())
    }

    /// The same with one more member that is an object.
    pub(super) fn nest(self, key: &str, value: &Self) -> Self {
        self.with_json(key, &value.json())
    }

    /// The same with the members of `other` after its own.
    pub(super) fn and(mut self, other: &Self) -> Self {
        if !self.0.is_empty() && !other.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&other.0);
        self
    }

    /// The same with one more member that is a list of objects.
    pub(super) fn list(self, key: &str, values: &[Self]) -> Self {
        let items: Vec<_> = values.iter().map(Self::json).collect();
        self.with_json(key, &format!("[{}]", items.join(",")))
    }

    fn with_json(mut self, key: &str, json: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        writing(write!(self.0, "\"{key}\":{json}"));
        self
    }

    pub(super) fn json(&self) -> String {
        format!("{{{}}}", self.0)
    }
}

/// Writing to a string does not fail.
fn writing(written: std::fmt::Result) {
    debug_assert!(written.is_ok());
}
