//! One statement over many messages of one session on PostgreSQL, with the store's triggers and without.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::Bench;
use super::postgres::Database;
use crate::side::Side;
use crate::table::Line;

const MESSAGES: u64 = 50_000;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = Database::create(bench)?;
    database.fill(bench, 1, MESSAGES)?;
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    for run in 0..bench.options.runs {
        for (side, triggers) in [(&mut ours, "ENABLE"), (&mut theirs, "DISABLE")] {
            let seconds = bench.runtime.block_on(async {
                let client = database.pool(1)?.get().await?;
                // The same state of the table before each run.
                client.batch_execute("VACUUM FULL task_session_messages").await?;
                client.batch_execute("CHECKPOINT").await?;
                let switch = format!("ALTER TABLE task_session_messages {triggers} TRIGGER USER");
                client.batch_execute(&switch).await?;
                let begun = Instant::now();
                let sql = "UPDATE task_session_messages SET author_id = $1 WHERE task_session_id = 's0'";
                let changed = client.execute(sql, &[&format!("{triggers} {run}")]).await?;
                ensure!(changed == MESSAGES, "{changed} messages changed");
                anyhow::Ok(begun.elapsed().as_secs_f64())
            })?;
            side.add(seconds);
        }
    }
    let what = format!("PostgreSQL: one UPDATE of {MESSAGES} messages of a session");
    Ok(vec![Line::Ratio { what, peer: "the same without triggers", ours, theirs, goal: 3.0 }])
}
