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
mod pages;
mod postgres;
mod writes;

use anyhow::Result;
use tokio::runtime::Runtime;

use crate::options::Options;
use crate::parts::{self, Part};
use data::Data;

/// Everything that the parts share.
struct Bench {
    options: Options,
    data: Data,
    runtime: Runtime,
}

const PARTS: [Part<Bench>; 8] = [
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
    let options = Options::parse(arguments, &PARTS.map(|(name, _)| name), None)?;
    let bench = Bench { data: Data::prepare()?, runtime: Runtime::new()?, options };
    let measured = format!("{} runs of each side by turns", bench.options.runs);
    parts::run(&bench, &PARTS, &bench.options, &measured)
}
