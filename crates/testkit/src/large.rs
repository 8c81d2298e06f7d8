//! Large databases of a known mix, quickly: what benches and tests of scale run on.
//!
//! Rows have the shapes that OpenCode 1.18.34 writes (fact A3, A4) with made-up ids. The mix follows public reports of databases of
//! many gigabytes: most bytes are superseded copies in `event` (user messages with growing diff summaries, tool parts with growing
//! output), tool output is the bulk of `part`, then reasoning and text, and a few percent of the file are free pages. Equal options
//! give byte-equal files.

use std::path::Path;

use crate::fixture::{FileOptions, Fixture, Layout};

mod generator;
mod v1;
mod v2;

use generator::Generator;

/// How large, and of what.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the file to reach, in bytes.
    pub bytes: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Share of all row data that `event` gets, 0.0 to 0.95.
    pub event_share: f64,
    /// Share for the 2.x tables; 0.0 leaves them out.
    pub v2_share: f64,
    /// Share of the file left as free pages.
    pub free_share: f64,
    /// One more session, with a user message of this many bytes and three event copies of it; 0 for none (458 MiB was reported).
    pub giant_bytes: usize,
    /// Directory of the sessions.
    pub directory: String,
    /// Id of their project, a hash of 40 hex digits; a server lists sessions of its own project only.
    pub project: Option<String>,
}

impl Options {
    /// The reference mix at this size.
    pub fn of_bytes(bytes: u64) -> Self {
        Self {
            bytes,
            seed: 1,
            event_share: 0.75,
            v2_share: 0.05,
            free_share: 0.02,
            giant_bytes: 0,
            directory: "/home/user/project".to_owned(),
            project: None,
        }
    }
}

/// Rows of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Rows.
    pub rows: u64,
    /// Bytes of `data`.
    pub bytes: u64,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// 1.x sessions.
    pub sessions: u64,
    /// 2.x sessions.
    pub sessions_v2: u64,
    /// `message`.
    pub message: Total,
    /// `part`.
    pub part: Total,
    /// `event`.
    pub event: Total,
    /// `session_message`.
    pub session_message: Total,
    /// Pages of the file.
    pub pages: u64,
    /// Free ones among them.
    pub free_pages: u64,
}

impl Summary {
    fn bytes(&self) -> u64 {
        self.message.bytes + self.part.bytes + self.event.bytes + self.session_message.bytes
    }
}

/// Writes the database, in write-ahead mode and without side files. A file of that name is replaced.
pub fn write(path: &Path, options: &Options) -> Summary {
    let layout = if options.v2_share > 0.0 { Layout::Both } else { Layout::V1 };
    let db = Fixture::create_with(path, layout, FileOptions { wal: false, ..FileOptions::default() });
    db.sql(
        "PRAGMA journal_mode = off; PRAGMA cache_size = -200000; PRAGMA foreign_keys = off; PRAGMA locking_mode = exclusive; BEGIN",
    );
    let mut generator = Generator::new(&db, options);
    generator.reserve_free_pages();
    generator.projects();
    fill(&mut generator);
    if options.giant_bytes > 0 {
        v1::giant(&mut generator, options.giant_bytes);
    }
    let mut summary = generator.finish();
    db.sql("COMMIT; PRAGMA locking_mode = normal; PRAGMA journal_mode = wal");
    let count = |name| u64::try_from(db.integer(&format!("PRAGMA {name}"))).unwrap_or_default();
    (summary.pages, summary.free_pages) = (count("page_count"), count("freelist_count"));
    db.close();
    summary
}

/// Adds sessions until the file is large enough, steering the shares.
fn fill(generator: &mut Generator<'_>) {
    let (event_share, v2_share) = (generator.options.event_share, generator.options.v2_share);
    // How often copies repeat; goes up while events are too few.
    let mut repeats = 1.0;
    let mut parent: Option<String> = None;
    while !generator.is_full() {
        let share = |bytes: u64| ratio(bytes, generator.summary.bytes());
        if v2_share > 0.0 && share(generator.summary.session_message.bytes) < v2_share {
            v2::session(generator);
            continue;
        }
        let share = share(generator.summary.event.bytes);
        let with_events = event_share > 0.0 && share < event_share + 0.02;
        repeats = if share < event_share { f64::min(40.0, repeats * 1.15) } else { repeats * 0.8 };
        let number = generator.summary.sessions + 1;
        let last = v1::session(
            generator,
            repeats,
            with_events,
            parent.as_deref().filter(|_| number.is_multiple_of(9)),
        );
        parent = Some(last);
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares need no more than a few digits")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(options: &Options) -> (Summary, Vec<u8>, Fixture, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.db");
        let summary = write(&path, options);
        let bytes = std::fs::read(&path).unwrap();
        (summary, bytes, Fixture::reopen(&path), folder)
    }

    #[test]
    fn the_mix_is_the_one_asked_for_and_repeats() {
        let options = Options::of_bytes(24 << 20);
        let (summary, bytes, db, _folder) = written(&options);
        assert!(
            bytes.len() as u64 >= options.bytes && (bytes.len() as u64) < options.bytes * 5 / 4,
            "{}",
            bytes.len()
        );
        let share = |total: Total| ratio(total.bytes, summary.bytes());
        assert!((0.65..0.85).contains(&share(summary.event)), "{summary:?}");
        assert!((0.02..0.12).contains(&share(summary.session_message)), "{summary:?}");
        assert!((0.01..0.04).contains(&ratio(summary.free_pages, summary.pages)), "{summary:?}");
        for (table, total) in [("message", summary.message), ("part", summary.part), ("event", summary.event)]
        {
            let rows = db.integer(&format!("SELECT count(*) FROM {table}"));
            assert_eq!(u64::try_from(rows).unwrap(), total.rows, "{table}");
            let bytes = db.integer(&format!("SELECT sum(octet_length(data)) FROM {table}"));
            assert_eq!(u64::try_from(bytes).unwrap(), total.bytes, "{table}");
            assert_eq!(
                db.integer(&format!("SELECT count(*) FROM {table} WHERE NOT json_valid(data)")),
                0,
                "{table}"
            );
        }
        assert_eq!(db.integer("SELECT count(*) FROM session_message WHERE NOT json_valid(data)"), 0);
        assert_eq!(db.text("PRAGMA integrity_check"), "ok");
        assert_eq!(db.integer("SELECT count(*) FROM pragma_foreign_key_check"), 0);
        let again = written(&options);
        assert_eq!(again.0, summary);
        assert!(again.1 == bytes, "equal options give equal bytes");
        assert!(written(&Options { seed: 2, ..options }).1 != bytes);
    }

    #[test]
    fn the_newest_event_of_a_part_is_the_part() {
        let (_, _, db, _folder) = written(&Options { v2_share: 0.0, ..Options::of_bytes(4 << 20) });
        let differing = db.integer(
            "WITH copy AS (SELECT json_extract(data, '$.part.id') id, max(seq), \
             json_remove(json_extract(data, '$.part'), '$.id', '$.sessionID', '$.messageID') body \
             FROM event WHERE type = 'message.part.updated.1' GROUP BY 1) \
             SELECT count(*) FROM part JOIN copy USING (id) WHERE json(part.data) <> copy.body",
        );
        assert_eq!(differing, 0);
        assert_eq!(db.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'session_v2'"), 0);
    }

    #[test]
    fn a_giant_message_has_the_size_asked_for() {
        let options = Options { giant_bytes: 3 << 20, ..Options::of_bytes(1 << 20) };
        let (_, _, db, _folder) = written(&options);
        assert!(db.integer("SELECT max(octet_length(data)) FROM message") >= 3 << 20);
        assert_eq!(db.integer("SELECT count(*) FROM event WHERE octet_length(data) >= 3 << 20"), 3);
    }
}
