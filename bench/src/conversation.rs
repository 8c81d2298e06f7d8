//! `conversation`: every goal of the conversation store, on SQLite and PostgreSQL, as a Markdown table.
//!
//! ```text
//! cargo xtask bench conversation [--runs N] [--only PART]...
//! ```
//!
//! Both sides take turns in this process, on stores of one shape. Messages have 1 KiB. Parts: `updates`, `inserts`, `postgres`, `pages`, `open`,
//! `growth`, `bulk`, `cutover`.

mod bulk;
mod cutover;
mod data;
mod growth;
mod open;
mod options;
mod pages;
mod postgres;
mod writes;

use std::io::Write as _;

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;

use crate::table::{self, Line};
use data::Data;
use options::Options;

/// Everything that the parts share.
struct Bench {
    options: Options,
    data: Data,
    runtime: Runtime,
}

type Part = (&'static str, fn(&Bench) -> Result<Vec<Line>>);

const PARTS: [Part; 8] = [
    ("updates", writes::updates),
    ("inserts", writes::inserts),
    ("postgres", writes::postgres),
    ("pages", pages::run),
    ("open", open::run),
    ("growth", growth::run),
    ("bulk", bulk::run),
    ("cutover", cutover::run),
];

/// Measures what `arguments` ask for and prints the table. An error at the end where a goal was missed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, &PARTS.map(|(name, _)| name))?;
    let bench = Bench { data: Data::prepare()?, runtime: Runtime::new()?, options };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", table::head(&format!("{} runs of each side by turns", bench.options.runs)))?;
    let mut missed = 0;
    for (name, part) in PARTS {
        if bench.options.is_wanted(name) {
            for line in part(&bench)? {
                missed += usize::from(!line.is_met());
                writeln!(out, "{line}")?;
            }
        }
    }
    ensure!(missed == 0, "{missed} of the goals were missed");
    Ok(())
}
