//! Receipt writes against the same statements without triggers, receipts or anything read back, one transaction each.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use headwater_model::MessageId;
use headwater_model::conversation::Author;
use headwater_store::{Batch, ConversationWriter, Mutation, NewMessage};
use headwater_store_postgres::{PostgresOptions, PostgresStore};
use headwater_store_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

use super::Bench;
use super::data::{self, WRITERS};
use super::postgres::Database;
use crate::side::Side;
use crate::table::Line;

/// Messages of each session before the measurement.
const MESSAGES: u64 = 1000;

/// Writes of each writer in one run.
const SQLITE_WRITES: u64 = 4000;
const POSTGRES_WRITES: u64 = 500;

/// The share of the peer's rate that is wanted, as the ratio of the times.
const SQLITE_GOAL: f64 = 1.0 / 0.8;
const POSTGRES_GOAL: f64 = 1.0 / 0.6;

/// Updates in a second that are wanted on SQLite: ten times what the host's authors published for its journal.
const UPDATES_PER_SECOND_GOAL: f64 = 7500.0;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Update,
    Insert,
}

/// Updates on SQLite.
pub(super) fn updates(bench: &Bench) -> Result<Vec<Line>> {
    let (line, rate) = sqlite(bench, Kind::Update, "update")?;
    let what = "SQLite: updates with receipts".to_owned();
    Ok(vec![line, Line::AtLeast { what, figure: rate, unit: "/s", goal: UPDATES_PER_SECOND_GOAL }])
}

/// Inserts on SQLite.
pub(super) fn inserts(bench: &Bench) -> Result<Vec<Line>> {
    Ok(vec![sqlite(bench, Kind::Insert, "insert")?.0])
}

/// The comparison, and our rate in writes per second.
fn sqlite(bench: &Bench, kind: Kind, what: &str) -> Result<(Line, f64)> {
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    for _ in 0..bench.options.runs {
        ours.add(sqlite_ours(bench, kind)?);
        theirs.add(sqlite_theirs(bench, kind)?);
    }
    let writes = WRITERS as u64 * SQLITE_WRITES;
    let rate = per_second(writes, ours.best());
    let what = format!("SQLite: {writes} receipts for one {what} each, {WRITERS} writers, 1 KiB");
    let peer = "the same statement alone, without triggers, one transaction each, one connection";
    Ok((Line::Ratio { what, peer, ours, theirs, goal: SQLITE_GOAL }, rate))
}

/// Updates on PostgreSQL.
pub(super) fn postgres(bench: &Bench) -> Result<Vec<Line>> {
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    for _ in 0..bench.options.runs {
        let database = Database::create(bench)?;
        database.fill(bench, WRITERS, MESSAGES)?;
        ours.add(bench.runtime.block_on(postgres_ours(&database))?);
        theirs.add(bench.runtime.block_on(postgres_theirs(&database))?);
    }
    let writes = WRITERS as u64 * POSTGRES_WRITES;
    let what = format!("PostgreSQL: {writes} receipts for one update each, {WRITERS} sessions, 1 KiB");
    let peer = "plain UPDATE, triggers off, same pool";
    Ok(vec![Line::Ratio { what, peer, ours, theirs, goal: POSTGRES_GOAL }])
}

#[expect(clippy::cast_precision_loss, reason = "a figure of a table has few digits")]
fn per_second(writes: u64, seconds: f64) -> f64 {
    writes as f64 / seconds
}

fn fresh(bench: &Bench) -> Result<tempfile::TempDir> {
    let made = bench.data.made("conversation-writes", |path| data::create(path, WRITERS, MESSAGES))?;
    let folder = bench.data.scratch()?;
    std::fs::copy(made, folder.path().join("store.db"))?;
    std::fs::File::open(folder.path().join("store.db"))?.sync_all()?;
    Ok(folder)
}

fn sqlite_ours(bench: &Bench, kind: Kind) -> Result<f64> {
    let folder = fresh(bench)?;
    let store = SqliteStore::open(&folder.path().join("store.db"), SqliteOptions::default())?;
    bench.runtime.block_on(written(Arc::new(store), kind, SQLITE_WRITES))
}

/// Seconds that all writers need.
async fn written(store: Arc<impl ConversationWriter + 'static>, kind: Kind, writes: u64) -> Result<f64> {
    let begun = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|session| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for number in 0..writes {
                    store.apply(batch(kind, session, number)?).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn batch(kind: Kind, session: usize, number: u64) -> Result<Batch> {
    match kind {
        Kind::Update => data::update(session, 1 + number % MESSAGES, &content(number)),
        Kind::Insert => Ok(Batch {
            session: data::session(session)?,
            at: data::now(number)?,
            mutations: vec![Mutation::CreateMessage(NewMessage {
                id: MessageId::new(new_id(session, number))?,
                turn: data::turn(session)?,
                author: Author::Agent,
                author_id: String::new(),
                kind: "message".to_owned(),
                content: content(number),
                requests_input: false,
                metadata: "{}".to_owned(),
                created_at: None,
            })],
        }),
    }
}

/// Differs from one write to the next, so that each changes its row.
fn content(number: u64) -> String {
    let mut text = data::text('b');
    text.replace_range(0..8, &format!("{number:08}"));
    text
}

fn new_id(session: usize, number: u64) -> String {
    format!("n{session}-{number:08}")
}

/// One connection behind a lock: with a connection each, writers would wait for each other in SQLite, which takes longer.
fn sqlite_theirs(bench: &Bench, kind: Kind) -> Result<f64> {
    let folder = fresh(bench)?;
    let db = without_triggers(&folder.path().join("store.db"))?;
    let db = Mutex::new(db);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|session| {
                let db = &db;
                scope.spawn(move || {
                    for number in 0..SQLITE_WRITES {
                        let db = db.lock().unwrap_or_else(PoisonError::into_inner);
                        plain(&db, kind, session, number)?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().ok().context("a writer ended")?)
    })?;
    Ok(begun.elapsed().as_secs_f64())
}

fn without_triggers(path: &Path) -> Result<Connection> {
    let db = data::connect(path)?;
    let triggers: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for trigger in triggers {
        db.execute_batch(&format!("DROP TRIGGER {trigger}"))?;
    }
    Ok(db)
}

fn plain(db: &Connection, kind: Kind, session: usize, number: u64) -> Result<()> {
    let at = data::now(number)?.stored_text();
    match kind {
        Kind::Update => {
            let sql = "UPDATE task_session_messages SET content = ?1, updated_at = ?2 WHERE id = ?3";
            let id = data::message_id(session, 1 + number % MESSAGES);
            db.prepare_cached(sql)?.execute((content(number), at, id))?;
        }
        Kind::Insert => {
            let sql = "INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, created_at, updated_at, content)
                       VALUES (?1, ?2, 'task', ?3, 'agent', ?4, ?4, ?5)";
            let (owner, turn) = (format!("s{session}"), format!("t{session}"));
            db.prepare_cached(sql)?.execute((new_id(session, number), owner, turn, at, content(number)))?;
        }
    }
    Ok(())
}

async fn postgres_ours(database: &Database) -> Result<f64> {
    let store = PostgresStore::open(database.address(), PostgresOptions::default()).await?;
    written(Arc::new(store), Kind::Update, POSTGRES_WRITES).await
}

async fn postgres_theirs(database: &Database) -> Result<f64> {
    let pool = database.pool(PostgresOptions::default().connections)?;
    pool.get().await?.batch_execute("ALTER TABLE task_session_messages DISABLE TRIGGER USER").await?;
    let begun = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|session| {
            let pool = pool.clone();
            tokio::spawn(async move {
                for number in 0..POSTGRES_WRITES {
                    let client = pool.get().await?;
                    let statement = client
                        .prepare_cached(
                            "UPDATE task_session_messages SET content = $1, updated_at = now() WHERE id = $2",
                        )
                        .await?;
                    let id = data::message_id(session, 1 + number % MESSAGES);
                    client.execute(&statement, &[&content(number + 1), &id]).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    Ok(begun.elapsed().as_secs_f64())
}
