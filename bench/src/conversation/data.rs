//! Stores to measure: sessions `s0`, `s1`… of one task, each with one turn `t0`, `t1`… and its messages.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use headwater_model::conversation::OrderKey;
use headwater_model::{MessageId, SessionId, TurnId, WallTime};
use headwater_store::{Batch, MessagePatch, Mutation};
use headwater_store_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

/// Sessions that are written to at the same time, each by a writer of its own.
pub(super) const WRITERS: usize = 8;

/// Bytes of a message.
pub(super) const MESSAGE_BYTES: usize = 1024;

/// When everything here happens: seconds since 1970.
const BEGINNING: i64 = 1_772_000_000;

/// Part of every name: a change of what is written needs a new one.
const GENERATION: u32 = 3;

/// Where the stores are.
pub(super) struct Data {
    folder: PathBuf,
}

impl Data {
    pub(super) fn prepare() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder: folder.canonicalize()? })
    }

    /// A folder for what is gone after the measurement.
    pub(super) fn scratch(&self) -> Result<tempfile::TempDir> {
        Ok(tempfile::tempdir_in(&self.folder)?)
    }

    /// The file of that name, which `write` makes where it is not there yet; in the page cache.
    pub(super) fn made(&self, name: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let path = self.folder.join(format!("{name}-{GENERATION}.db"));
        if !path.exists() {
            let part = tempfile::tempdir_in(&self.folder)?;
            let new = part.path().join("new.db");
            write(&new)?;
            fs::rename(&new, &path)?;
        }
        io::copy(&mut File::open(&path)?, &mut io::sink())?;
        Ok(path)
    }

    /// A SQLite store with `messages` messages in its first session.
    pub(super) fn store_of(&self, messages: u64) -> Result<PathBuf> {
        self.made(&format!("conversation-{messages}"), |path| create(path, 1, messages))
    }
}

/// Makes a SQLite store of `sessions` sessions with `messages` messages each.
pub(super) fn create(path: &Path, sessions: usize, messages: u64) -> Result<()> {
    drop(SqliteStore::open(path, SqliteOptions::default())?);
    let db = connect(path)?;
    db.execute_batch("BEGIN")?;
    for statement in rows(sessions, messages) {
        db.execute_batch(&statement).context("fill a store")?;
    }
    db.execute_batch("COMMIT; ANALYZE; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE; PRAGMA journal_mode = WAL")?;
    db.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// The statements that fill a store; they mean the same to SQLite and PostgreSQL but for the series.
fn rows(sessions: usize, messages: u64) -> Vec<String> {
    let mut statements = vec![HEAD.to_owned()];
    for session in 0..sessions {
        statements.push(session_and_turn(session));
        statements.push(format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages})
             INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, created_at, updated_at, content)
             SELECT printf('m%d-%08d', {session}, i), 's{session}', 'task', 't{session}', 'agent',
                 strftime('%Y-%m-%d %H:%M:%S', {BEGINNING} + i, 'unixepoch'),
                 strftime('%Y-%m-%d %H:%M:%S', {BEGINNING} + i, 'unixepoch'), '{}' FROM n WHERE i <= {messages}",
            text('a')
        ));
    }
    statements
}

/// The workspace and the task of all sessions.
pub(super) const HEAD: &str = "INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ('w', 'w', '2026-01-01 00:00:00', '2026-01-01 00:00:00');
     INSERT INTO tasks (id, workspace_id, title, created_at, updated_at) VALUES ('task', 'w', 't', '2026-01-01 00:00:00', '2026-01-01 00:00:00')";

/// A session without messages.
pub(super) fn session_and_turn(number: usize) -> String {
    let at = "'2026-01-01 00:00:00'";
    format!(
        "INSERT INTO task_sessions (id, task_id, started_at, updated_at) VALUES ('s{number}', 'task', {at}, {at});
         INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
             VALUES ('t{number}', 's{number}', 'task', {at}, {at}, {at})"
    )
}

/// A text of the size of a message.
pub(super) fn text(letter: char) -> String {
    letter.to_string().repeat(MESSAGE_BYTES)
}

/// The id of message `number` of session `session`, from 1.
pub(super) fn message_id(session: usize, number: u64) -> String {
    format!("m{session}-{number:08}")
}

/// Gives message `number` of session `session` another text.
pub(super) fn update(session: usize, number: u64, content: &str) -> Result<Batch> {
    let patch = MessagePatch { content: Some(content.to_owned()), ..MessagePatch::default() };
    let message = MessageId::new(message_id(session, number))?;
    Ok(Batch {
        session: self::session(session)?,
        at: now(number)?,
        mutations: vec![Mutation::UpdateMessage { message, patch }],
    })
}

pub(super) fn session(number: usize) -> Result<SessionId> {
    Ok(SessionId::new(format!("s{number}"))?)
}

pub(super) fn turn(number: usize) -> Result<TurnId> {
    Ok(TurnId::new(format!("t{number}"))?)
}

/// A time that moves on with `number`.
pub(super) fn now(number: u64) -> Result<WallTime> {
    let seconds = BEGINNING + 10_000_000 + i64::try_from(number)?;
    Ok(WallTime::from_unix_micros(seconds * 1_000_000)?)
}

/// The order key of message `number` of the first session.
pub(super) fn key(number: u64) -> Result<OrderKey> {
    let at = WallTime::from_unix_micros((BEGINNING + i64::try_from(number)?) * 1_000_000)?;
    Ok(OrderKey { time: Some(at.order_time()), id: message_id(0, number) })
}

/// A connection as the store's own writer has it.
#[expect(clippy::disallowed_methods, reason = "the peer of the store, on a file of the bench")]
pub(super) fn connect(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON")?;
    Ok(db)
}
