//! What an update leaves behind: the row, and one counter for each session.

use anyhow::Result;
use headwater_store::ConversationWriter;
use headwater_store_sqlite::{SqliteOptions, SqliteStore};

use super::Bench;
use super::data::{self, WRITERS};
use crate::table::Line;

/// Updates of the same row.
const UPDATES: u64 = 10_000;

/// A page: what the file may grow by in all.
const PAGE_BYTES: f64 = 4096.0;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let folder = bench.data.scratch()?;
    let path = folder.path().join("store.db");
    data::create(&path, WRITERS, 100)?;
    let used = || -> Result<i64> {
        let db = data::connect(&path)?;
        let count = |pragma: &str| db.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
        Ok((count("page_count")? - count("freelist_count")?) * count("page_size")?)
    };
    let before = used()?;
    let store = SqliteStore::open(&path, SqliteOptions::default())?;
    bench.runtime.block_on(async {
        for number in 0..UPDATES {
            let text = data::text(if number % 2 == 0 { 'c' } else { 'd' });
            store.apply(data::update(0, 1, &text)?).await?;
        }
        anyhow::Ok(())
    })?;
    drop(store);
    let grown = used()? - before;
    let db = data::connect(&path)?;
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let revisions = count("SELECT count(*) FROM conversation_session_revisions")?;
    let sessions = count("SELECT count(*) FROM task_sessions")?;
    let journal = count(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('conversation_session_events',
         'conversation_message_versions', 'conversation_turn_versions', 'conversation_session_streams')",
    )?;
    let line =
        |what: String, figure: i64, unit, goal| Line::Limit { what, figure: small(figure), unit, goal };
    Ok(vec![
        line(
            format!("SQLite: growth of the database by {UPDATES} updates of one row"),
            grown,
            "bytes",
            PAGE_BYTES,
        ),
        line("SQLite: journal tables".to_owned(), journal, "tables", 0.0),
        line("SQLite: revision rows beyond sessions".to_owned(), (revisions - sessions).abs(), "rows", 0.0),
    ])
}

#[expect(clippy::cast_precision_loss, reason = "a figure of a table has few digits")]
fn small(figure: i64) -> f64 {
    figure as f64
}
