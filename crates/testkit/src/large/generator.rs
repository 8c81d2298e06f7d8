use rusqlite::{CachedStatement, ToSql, params};

use super::{Options, Summary, Total};
use crate::fixture::Fixture;
use crate::random::Random;

/// The first instant, in Unix milliseconds.
const START: i64 = 1_780_000_000_000;

/// Bytes of text that all rows take their slices from.
const POOL_BYTES: usize = 6 << 20;

const WORDS: [&str; 36] = [
    "fn",
    "let",
    "mut",
    "struct",
    "impl",
    "match",
    "return",
    "value",
    "index",
    "buffer",
    "cursor",
    "error",
    "result",
    "parse",
    "token",
    "render",
    "update",
    "query",
    "select",
    "insert",
    "delete",
    "commit",
    "merge",
    "branch",
    "window",
    "layout",
    "handler",
    "request",
    "response",
    "stream",
    "na\u{ef}ve",
    "caf\u{e9}",
    "\u{6570}\u{636e}",
    "session",
    "module",
    "config",
];

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Makes ids, times and text, and writes rows.
pub(super) struct Generator<'a> {
    pub(super) options: &'a Options,
    pub(super) random: Random,
    pub(super) summary: Summary,
    pub(super) project: String,
    db: &'a Fixture,
    clock: i64,
    ids: u64,
    pool: String,
    at: usize,
}

impl<'a> Generator<'a> {
    pub(super) fn new(db: &'a Fixture, options: &'a Options) -> Self {
        let mut random = Random::new(options.seed);
        let pool = pool(&mut random);
        let project = options.project.clone().unwrap_or_else(|| hash(&mut random));
        Self { options, random, summary: Summary::default(), project, db, clock: START, ids: 0, pool, at: 0 }
    }

    /// Fills pages that [`finish`](Self::finish) frees again.
    pub(super) fn reserve_free_pages(&self) {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rough share"
        )]
        let count = (self.options.bytes as f64 * self.options.free_share) as u64 / 65_536;
        self.db.sql("CREATE TABLE filler (x)");
        self.db.sql(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 WHERE {count} > 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
             INSERT INTO filler SELECT zeroblob(65000) FROM n"
        ));
    }

    pub(super) fn projects(&self) {
        self.db.project(&self.project, &self.options.directory);
        self.db.project("global", "/");
    }

    pub(super) fn finish(self) -> Summary {
        self.db.sql("DROP TABLE filler");
        self.summary
    }

    /// Whether the file has its size.
    pub(super) fn is_full(&self) -> bool {
        u64::try_from(self.db.integer("PRAGMA page_count"))
            .is_ok_and(|pages| pages * 4096 >= self.options.bytes)
    }

    /// The clock, moved on by `ms`.
    pub(super) fn tick(&mut self, ms: i64) -> i64 {
        self.clock += ms;
        self.clock
    }

    /// The clock.
    pub(super) fn now(&self) -> i64 {
        self.clock
    }

    /// A number that no other call has returned.
    pub(super) fn number(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// An id as OpenCode makes them: prefix, 12 hex digits of the time and a counter, 14 base-62 characters. Session ids run backwards.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        let number = self.number();
        let mut stamp = ((self.clock.unsigned_abs() << 12) + (number & 0xfff)) & 0xffff_ffff_ffff;
        if prefix == "ses" {
            stamp = 0xffff_ffff_ffff - stamp;
        }
        let mut id = format!("{prefix}_{stamp:012x}");
        id.extend((0..14).map(|_| char::from(self.random.pick(ALPHABET))));
        id
    }

    pub(super) fn hash(&mut self) -> String {
        hash(&mut self.random)
    }

    /// Whether something of this chance happens.
    pub(super) fn chance(&mut self, chance: f64) -> bool {
        self.random.unit() < chance
    }

    /// A size around `typical` with a heavy tail, 40 to `most`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are small"
    )]
    pub(super) fn size(&mut self, typical: usize, most: usize) -> usize {
        // The sum of twelve is close enough to a normal distribution; its exponential is heavy-tailed.
        let normal = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
        (((normal * 1.1).exp() * typical as f64) as usize).clamp(40, most)
    }

    /// About `length` bytes of text, as it stands inside a JSON string.
    pub(super) fn text(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length);
        while text.len() < length {
            if self.at >= self.pool.len() - 64 {
                self.at = 0;
            }
            let slice = cut(&self.pool[self.at..], length - text.len());
            if slice.is_empty() {
                break;
            }
            text.push_str(slice);
            self.at = self.next_start(self.at + slice.len() + 13);
        }
        text
    }

    /// The first place from `at` on where neither a character nor an escape is cut.
    fn next_start(&self, mut at: usize) -> usize {
        while at < self.pool.len()
            && (!self.pool.is_char_boundary(at) || self.pool.as_bytes()[at - 1] == b'\\')
        {
            at += 1;
        }
        at.min(self.pool.len())
    }

    pub(super) fn write_event(&mut self, session: &str, seq: i64, kind: &str, data: &str) {
        let id = self.id("evt");
        self.insert(
            "INSERT INTO event (id, aggregate_id, seq, type, data) VALUES (?, ?, ?, ?, ?)",
            params![id, session, seq, kind, data],
        );
        count(&mut self.summary.event, data);
    }

    pub(super) fn write_message(&mut self, id: &str, session: &str, at: i64, data: &str) {
        self.insert(
            "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?)",
            params![id, session, at, at + 900, data],
        );
        count(&mut self.summary.message, data);
    }

    pub(super) fn write_part(&mut self, id: &str, message: &str, session: &str, at: i64, data: &str) {
        self.insert(
            "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?)",
            params![id, message, session, at, at + 300, data],
        );
        count(&mut self.summary.part, data);
    }

    pub(super) fn write_session_message(&mut self, session: &str, kind: &str, seq: i64, at: i64, data: &str) {
        let id = self.id("msg");
        self.insert(
            "INSERT INTO session_message (id, session_id, type, seq, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![id, session, kind, seq, at, at + 20, data],
        );
        count(&mut self.summary.session_message, data);
    }

    pub(super) fn insert(&self, statement: &str, values: &[&dyn ToSql]) {
        let mut prepared: CachedStatement<'_> =
            self.db.connection().prepare_cached(statement).expect("prepare a row of the large database");
        prepared.execute(values).expect("write a row of the large database");
    }
}

/// The beginning of JSON-escaped `text` of at most `length` bytes that cuts neither a character nor an escape.
pub(super) fn cut(text: &str, length: usize) -> &str {
    let slice = &text[..text.floor_char_boundary(length)];
    // The text has no escaped backslash, so a backslash at the end has lost its letter.
    slice.strip_suffix('\\').unwrap_or(slice)
}

fn count(total: &mut Total, data: &str) {
    total.rows += 1;
    total.bytes += data.len() as u64;
}

fn hash(random: &mut Random) -> String {
    format!("{:016x}{:016x}{:08x}", random.bits(), random.bits(), random.bits() >> 32)
}

fn pool(random: &mut Random) -> String {
    let mut pool = String::with_capacity(POOL_BYTES + 256);
    let mut line = 0;
    while pool.len() < POOL_BYTES {
        pool.extend(format!("{line:05}").chars());
        line += 1;
        for _ in 0..4 + random.below(10) {
            pool.push(' ');
            pool.push_str(random.pick(&WORDS));
        }
        pool.push_str("\\n");
    }
    pool
}
