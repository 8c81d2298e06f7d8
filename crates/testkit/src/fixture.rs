//! Small databases in OpenCode's layouts, written row by row.
//!
//! Row ids, times and JSON are the caller's; [`part`], [`message`], [`v2`] and [`event`](Fixture::event) give the shapes and the
//! member order that OpenCode 1.18.34 and 2.x really write (facts A3, A4, B2).

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};

pub mod message;
pub mod part;
pub mod v2;

mod json;

pub use json::quote;

/// The instant that fixtures call now, in Unix milliseconds.
pub const NOW: i64 = 1_790_000_000_000;

/// One day in milliseconds.
pub const DAY: i64 = 86_400_000;

/// The project that every fixture has.
pub const PROJECT: &str = "prj_a";

/// The directory of [`PROJECT`].
pub const DIRECTORY: &str = "/home/user/a";

/// Which tables a fixture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All tables and recorded migrations of 1.18.34; the real program opens it.
    V1,
    /// All tables of 2.x, made new.
    V2,
    /// A 1.x database that 2.x upgraded in place: the 1.x tables stay beside the new ones, and added columns come last.
    Both,
    /// 1.x with only the columns that readers rely on.
    ReducedV1,
    /// 2.x with only the columns that readers rely on.
    ReducedV2,
    /// Both reduced layouts in one file.
    ReducedBoth,
}

impl Layout {
    /// The statements that create its tables.
    pub const fn ddl(self) -> &'static str {
        match self {
            Self::V1 => include_str!("../sql/v1.sql"),
            Self::V2 => include_str!("../sql/v2.sql"),
            Self::Both => {
                concat!(
                    include_str!("../sql/v1.sql"),
                    include_str!("../sql/upgrade.sql"),
                    include_str!("../sql/v2.sql")
                )
            }
            Self::ReducedV1 => {
                concat!(include_str!("../sql/reduced.sql"), include_str!("../sql/reduced-v1.sql"))
            }
            Self::ReducedV2 => {
                concat!(include_str!("../sql/reduced.sql"), include_str!("../sql/reduced-v2.sql"))
            }
            Self::ReducedBoth => concat!(
                include_str!("../sql/reduced.sql"),
                include_str!("../sql/reduced-v1.sql"),
                include_str!("../sql/reduced-v2.sql")
            ),
        }
    }
}

/// How the file itself is set up; [`Default`] is what OpenCode does (fact A1).
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// Write-ahead log; otherwise a rollback journal.
    pub wal: bool,
    /// Bytes per page.
    pub page_size: u32,
    /// `PRAGMA auto_vacuum`: 0 none, 1 full, 2 incremental.
    pub auto_vacuum: u8,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { wal: true, page_size: 4096, auto_vacuum: 0 }
    }
}

/// A session row of either layout. Fields left alone with `..Session::named(id)` describe an idle session used at [`NOW`].
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// Row id.
    pub id: &'a str,
    /// Its project; must exist.
    pub project: &'a str,
    /// Parent session, for a child that a task tool started. It need not exist.
    pub parent: Option<&'a str>,
    /// Working directory.
    pub directory: &'a str,
    /// Title.
    pub title: &'a str,
    /// Creation, in Unix milliseconds.
    pub created: i64,
    /// Last use, in Unix milliseconds.
    pub updated: i64,
    /// When it was archived, in Unix milliseconds.
    pub archived: Option<i64>,
}

impl<'a> Session<'a> {
    /// A session that carries its id as title.
    pub fn named(id: &'a str) -> Self {
        Self {
            id,
            project: PROJECT,
            parent: None,
            directory: DIRECTORY,
            title: id,
            created: NOW,
            updated: NOW,
            archived: None,
        }
    }
}

/// A database under construction.
#[derive(Debug)]
pub struct Fixture {
    connection: Connection,
    path: PathBuf,
}

impl Fixture {
    /// Creates the file as OpenCode would (write-ahead log, pages of 4096 bytes), with [`PROJECT`] in it. A file of that name and
    /// its side files are replaced.
    pub fn create(path: impl AsRef<Path>, layout: Layout) -> Self {
        Self::create_with(path, layout, FileOptions::default())
    }

    /// The same with other file settings.
    pub fn create_with(path: impl AsRef<Path>, layout: Layout, options: FileOptions) -> Self {
        let path = path.as_ref().to_owned();
        remove_database(&path);
        let connection = open(&path);
        let set = |name, value: &str| {
            connection.pragma_update(None, name, value).expect("set a pragma of the fixture");
        };
        set("page_size", &options.page_size.to_string());
        set("auto_vacuum", &options.auto_vacuum.to_string());
        set("journal_mode", if options.wal { "wal" } else { "delete" });
        // A fixture need not survive a power cut.
        set("synchronous", "off");
        set("foreign_keys", "on");
        connection.execute_batch(layout.ddl()).expect("create the fixture's tables");
        let fixture = Self { connection, path };
        fixture.project(PROJECT, DIRECTORY);
        fixture
    }

    /// Opens a fixture again to change it. Leaves foreign keys on and the log alone.
    pub fn reopen(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        assert!(path.exists(), "no fixture at {}", path.display());
        let connection = open(&path);
        connection.pragma_update(None, "foreign_keys", "on").expect("turn foreign keys on");
        Self { connection, path }
    }

    /// The connection, for whatever the methods do not offer.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs statements without parameters.
    pub fn sql(&self, statements: &str) {
        self.connection.execute_batch(statements).expect("run the fixture's statements");
    }

    /// Runs `body` in one transaction: many rows at once are written much faster.
    pub fn transaction<T>(&self, body: impl FnOnce(&Self) -> T) -> T {
        self.sql("BEGIN IMMEDIATE");
        let value = body(self);
        self.sql("COMMIT");
        value
    }

    /// The single integer that `query` selects.
    pub fn integer(&self, query: &str) -> i64 {
        self.connection.query_row(query, [], |row| row.get(0)).expect("read one integer")
    }

    /// The single text that `query` selects.
    pub fn text(&self, query: &str) -> String {
        self.connection.query_row(query, [], |row| row.get(0)).expect("read one text")
    }

    /// Adds a project whose worktree is `directory`.
    pub fn project(&self, id: &str, directory: &str) {
        self.insert(
            "INSERT INTO project (id, worktree, vcs, name, time_created, time_updated, sandboxes) VALUES (?1, ?2, 'git', ?1, ?3, ?3, '[]')",
            params![id, directory, NOW],
        );
    }

    /// Adds a 1.x session.
    pub fn session(&self, session: &Session<'_>) {
        self.session_into("session", session);
    }

    /// Adds a 2.x session.
    pub fn session_v2(&self, session: &Session<'_>) {
        self.session_into("session_v2", session);
    }

    fn session_into(&self, table: &str, session: &Session<'_>) {
        let version = if table == "session" { "1.18.34" } else { "2.0.26" };
        self.insert(
            &format!(
                "INSERT INTO {table} (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated, \
                 time_archived) VALUES (?, ?, ?, 'slug-' || ?1, ?, ?, ?, ?, ?, ?)"
            ),
            params![
                session.id,
                session.project,
                session.parent,
                session.directory,
                session.title,
                version,
                session.created,
                session.updated,
                session.archived
            ],
        );
    }

    /// Adds a 1.x message of `session` written at `at` (Unix milliseconds), with the JSON of [`message`].
    pub fn message(&self, id: &str, session: &str, at: i64, data: &str) {
        self.insert(
            "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?3, ?)",
            params![id, session, at, data],
        );
    }

    /// Adds a 1.x user message written at [`NOW`].
    pub fn user(&self, id: &str, session: &str) {
        self.message(id, session, NOW, &message::user(NOW));
    }

    /// Adds a completed 1.x assistant message written at [`NOW`], with no parent.
    pub fn assistant(&self, id: &str, session: &str) {
        self.message(id, session, NOW, &message::assistant("msg_none", NOW));
    }

    /// Adds a 1.x part written at [`NOW`], with the JSON of [`part`].
    pub fn part(&self, id: &str, message: &str, session: &str, data: &str) {
        self.part_at(id, message, session, NOW, data);
    }

    /// Adds a 1.x part written at `at` (Unix milliseconds).
    pub fn part_at(&self, id: &str, message: &str, session: &str, at: i64, data: &str) {
        self.insert(
            "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?4, ?)",
            params![id, message, session, at, data],
        );
    }

    /// Adds a 2.x row of `session` written at `at` (Unix milliseconds), with the JSON of [`v2`].
    pub fn session_message(&self, id: &str, session: &str, kind: &str, seq: i64, at: i64, data: &str) {
        self.insert(
            "INSERT INTO session_message (id, session_id, type, seq, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?5, ?)",
            params![id, session, kind, seq, at, data],
        );
    }

    /// Appends an event of `aggregate` (a session id) and moves its counter on. Returns the sequence number: 0 for the first.
    pub fn event(&self, aggregate: &str, kind: &str, data: &str) -> i64 {
        let seq: i64 = self
            .connection
            .prepare_cached(
                "INSERT INTO event_sequence (aggregate_id, seq) VALUES (?, 0) \
                 ON CONFLICT (aggregate_id) DO UPDATE SET seq = seq + 1 RETURNING seq",
            )
            .and_then(|mut statement| statement.query_row([aggregate], |row| row.get(0)))
            .expect("move the event counter");
        self.insert(
            "INSERT INTO event (id, aggregate_id, seq, type, data) VALUES (?, ?, ?, ?, ?)",
            params![format!("evt_{aggregate}_{seq:06}"), aggregate, seq, kind, data],
        );
        seq
    }

    /// Appends the event that a write of a message makes: a whole copy of it. `data` is what [`Fixture::message`] takes.
    pub fn message_event(&self, session: &str, id: &str, data: &str) -> i64 {
        self.event(session, "message.updated.1", &message::event(session, id, data))
    }

    /// Appends the event that a write of a part makes: a whole copy of it. `data` is what [`Fixture::part`] takes.
    pub fn part_event(&self, session: &str, message: &str, id: &str, data: &str) -> i64 {
        self.event(session, "message.part.updated.1", &part::event(session, message, id, data))
    }

    /// Makes another machine the owner of a session's events (fact B3).
    pub fn own_events(&self, aggregate: &str, owner: &str) {
        self.insert(
            "INSERT INTO event_sequence (aggregate_id, seq, owner_id) VALUES (?, 0, ?) \
             ON CONFLICT (aggregate_id) DO UPDATE SET owner_id = excluded.owner_id",
            params![aggregate, owner],
        );
    }

    /// Adds a row of the 2.x key-value store; `value` is JSON.
    pub fn kv(&self, key: &str, value: &str) {
        self.insert(
            "INSERT INTO kv (key, value, time_created, time_updated) VALUES (?, ?, ?, ?3)",
            params![key, value, NOW],
        );
    }

    /// Adds input that waits to be delivered to a 2.x session (fact B3).
    pub fn inbox(&self, id: &str, session: &str, seq: i64) {
        self.insert(
            "INSERT INTO session_inbox (id, session_id, type, payload, delivery, enqueued_seq, time_created) \
             VALUES (?, ?, 'user', '{\"text\":\"later\"}', 'queue', ?, ?)",
            params![id, session, seq, NOW],
        );
    }

    /// Folds the write-ahead log in and closes: one file, still in its journal mode, with no side files.
    pub fn close(self) -> PathBuf {
        let (busy, _, _): (i64, i64, i64) = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .expect("fold the log in");
        assert_eq!(busy, 0, "another connection holds the fixture's log");
        self.connection.close().map_err(|(_, error)| error).expect("close the fixture");
        self.path
    }

    /// Closes as OpenCode ends, normally or killed: `-wal` and `-shm` stay and hold rows (fact A1).
    pub fn close_leaving_log(self) -> PathBuf {
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .expect("keep the log on close");
        self.connection.close().map_err(|(_, error)| error).expect("close the fixture");
        self.path
    }

    fn insert(&self, statement: &str, values: &[&dyn rusqlite::ToSql]) {
        let rows = self
            .connection
            .prepare_cached(statement)
            .and_then(|mut prepared| prepared.execute(values))
            .expect("insert a row of the fixture");
        assert_eq!(rows, 1, "one row inserted");
    }
}

/// `path` with `suffix` appended to its name: `-wal`, `-shm`, `-journal`.
pub fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove_database(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match std::fs::remove_file(side_file(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                panic!("remove an old fixture: {error}")
            }
            _ => {}
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "fixtures are written on purpose; the opening rules protect users' files"
)]
fn open(path: &Path) -> Connection {
    Connection::open(path).expect("open the fixture")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 6] =
        [Layout::V1, Layout::V2, Layout::Both, Layout::ReducedV1, Layout::ReducedV2, Layout::ReducedBoth];

    #[test]
    fn every_layout_takes_its_rows_and_closes_without_side_files() {
        for layout in LAYOUTS {
            let folder = tempfile::tempdir().unwrap();
            let db = Fixture::create(folder.path().join("opencode.db"), layout);
            let (v1, v2) = match layout {
                Layout::V1 | Layout::ReducedV1 => (true, false),
                Layout::V2 | Layout::ReducedV2 => (false, true),
                Layout::Both | Layout::ReducedBoth => (true, true),
            };
            if v1 {
                db.session(&Session::named("ses_a"));
                db.user("msg_u", "ses_a");
                db.assistant("msg_a", "ses_a");
                db.part("prt_a", "msg_a", "ses_a", &part::text("hello"));
                assert_eq!(db.part_event("ses_a", "msg_a", "prt_a", &part::text("hello")), 0);
                assert_eq!(db.message_event("ses_a", "msg_u", &message::user(NOW)), 1);
            }
            if v2 {
                db.session_v2(&Session::named("ses_b"));
                db.session_message("smg_a", "ses_b", "user", 4, NOW, &v2::user("hi"));
            }
            if matches!(layout, Layout::V2 | Layout::Both) {
                db.kv("plugin:00:k", "{}");
                db.inbox("inb_a", "ses_b", 9);
            }
            db.own_events("ses_b", "elsewhere");
            assert_eq!(db.text("PRAGMA integrity_check"), "ok", "{layout:?}");
            assert_eq!(db.integer("SELECT count(*) FROM pragma_foreign_key_check"), 0, "{layout:?}");
            db.close();
            let names: Vec<_> = folder.path().read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(names, ["opencode.db"], "{layout:?}");
        }
    }

    #[test]
    fn a_closed_fixture_can_leave_its_rows_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let db = Fixture::create(folder.path().join("opencode.db"), Layout::V1);
        db.session(&Session::named("ses_a"));
        let path = db.close_leaving_log();
        assert!(side_file(&path, "-wal").metadata().unwrap().len() > 4096);
        let again = Fixture::reopen(&path);
        assert_eq!(again.integer("SELECT count(*) FROM session"), 1);
    }

    #[test]
    fn an_upgraded_file_has_added_columns_last_and_messages_of_2x_sessions() {
        let folder = tempfile::tempdir().unwrap();
        let db = Fixture::create(folder.path().join("opencode.db"), Layout::Both);
        assert_eq!(
            db.text("SELECT name FROM pragma_table_info('event') ORDER BY cid DESC LIMIT 1"),
            "created"
        );
        assert_eq!(db.text("SELECT \"table\" FROM pragma_foreign_key_list('session_message')"), "session_v2");
    }
}
