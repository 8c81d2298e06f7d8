//! `upkeep`: every goal of storage care against a named peer, on one large database, as a Markdown table.
//!
//! ```text
//! cargo xtask bench upkeep [--gib N] [--runs N] [--only PART]...
//! ```
//!
//! The database is the reference mix of the test kit (2 GiB unless said otherwise), written once and kept in `target/bench-data`, in the
//! page cache when a measurement begins. Both sides take turns; what changes a database gets a fresh copy, made outside the measured
//! time. Time is that of a whole process. Parts: `stats`, `rebuild`, `prune`, `search`, `memory`; `canonical` is a measurement of its own.

mod data;
mod memory;
mod peers;
mod prune;
mod rebuild;
mod search;
mod stats;

use anyhow::Result;

use crate::options::Options;
use crate::parts::{self, Part};
use crate::table;
use data::Data;

/// Bytes of the database in GiB where nobody says otherwise.
const GIB: f64 = 2.0;

/// Everything that the parts share.
struct Bench {
    options: Options,
    data: Data,
}

const PARTS: [Part<Bench>; 5] = [
    ("stats", stats::run),
    ("rebuild", rebuild::run),
    ("prune", prune::run),
    ("search", search::run),
    ("memory", memory::run),
];

/// Measures what `arguments` ask for and prints the table. An error at the end where a goal was missed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, &PARTS.map(|(name, _)| name), Some(GIB))?;
    let data = Data::prepare(options.gib.unwrap_or(GIB))?;
    let bench = Bench { options, data };
    let measured = format!(
        "Database of {:.0} MiB, {} runs of each side by turns, warm page cache",
        table::mib(bench.data.bytes()?),
        bench.options.runs
    );
    parts::run(&bench, &PARTS, &bench.options, &measured)
}
