//! Opening a store with many messages: nothing of them is read.

use std::time::Instant;

use anyhow::Result;
use headwater_store_sqlite::{SqliteOptions, SqliteStore};

use super::Bench;
use super::pages::LARGE;
use crate::side::Side;
use crate::table::Line;

const SMALL: u64 = 10_000;

/// Stores that are opened one after the other in one run.
const OPENED: usize = 20;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let (small, large) = (bench.data.store_of(SMALL)?, bench.data.store_of(LARGE)?);
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    for _ in 0..bench.options.runs {
        for (side, path) in [(&mut ours, &large), (&mut theirs, &small)] {
            let begun = Instant::now();
            for _ in 0..OPENED {
                drop(SqliteStore::open(path, SqliteOptions::default())?);
            }
            side.add(begun.elapsed().as_secs_f64());
        }
    }
    let (what, peer) =
        (format!("SQLite: {OPENED} times open and close, 1 M messages"), "the same, 10 k messages");
    Ok(vec![Line::Ratio { what, peer, ours, theirs, goal: 1.2 }])
}
