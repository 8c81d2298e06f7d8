//! A page of 100 out of a large session and out of one ten times as large: the cost must not grow.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use headwater_model::conversation::MessageRecord;
use headwater_store::{ConversationSource, PageLimit, PageQuery, Sort};
use headwater_store_sqlite::{SqliteOptions, SqliteStore};

use super::Bench;
use super::data;
use crate::side::Side;
use crate::table::Line;

/// Messages of the small and the large session.
pub(super) const SMALL: u64 = 100_000;
pub(super) const LARGE: u64 = 1_000_000;

/// Pages that are read from each place, one behind the other.
const PAGES: usize = 100;

/// Where reading begins.
const PLACES: [(&str, Sort, Option<u64>); 3] =
    [("first", Sort::Asc, None), ("middle", Sort::Asc, Some(2)), ("last", Sort::Desc, None)];

const GOAL: f64 = 1.2;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let (small, large) = (bench.data.store_of(SMALL)?, bench.data.store_of(LARGE)?);
    let mut lines = Vec::new();
    for (name, sort, share) in PLACES {
        let (mut ours, mut theirs) = (Side::default(), Side::default());
        for _ in 0..bench.options.runs {
            ours.add(read(bench, &large, sort, share.map(|share| LARGE / share))?);
            theirs.add(read(bench, &small, sort, share.map(|share| SMALL / share))?);
        }
        lines.push(Line::Ratio {
            what: format!("SQLite: {PAGES} pages of 100 messages out of 1 M, {name}"),
            peer: "the same out of 100 k",
            ours,
            theirs,
            goal: GOAL,
        });
    }
    Ok(lines)
}

fn read(bench: &Bench, path: &Path, sort: Sort, behind: Option<u64>) -> Result<f64> {
    let store = SqliteStore::open(path, SqliteOptions::default())?;
    bench.runtime.block_on(async {
        let mut query = PageQuery::of(data::session(0)?);
        (query.sort, query.limit) = (sort, PageLimit::MAX);
        query.after = behind.map(data::key).transpose()?;
        // What the connection keeps from here on is the same on both sides.
        store.messages(&query).await?;
        let begun = Instant::now();
        for _ in 0..PAGES {
            let page = store.messages(&query).await?;
            ensure!(page.records.len() == PageLimit::MAX.get(), "a page is not full");
            query.after = page.records.last().map(MessageRecord::order_key);
        }
        Ok(begun.elapsed().as_secs_f64())
    })
}
