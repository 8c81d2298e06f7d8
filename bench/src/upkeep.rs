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
mod options;
mod peers;
mod prune;
mod rebuild;
mod search;
mod stats;

use std::io::Write as _;

use anyhow::{Result, ensure};

use crate::table::{self, Line};
use data::Data;

use options::Options;

/// Everything that the parts share.
struct Bench {
    options: Options,
    data: Data,
}

type Part = (&'static str, fn(&Bench) -> Result<Vec<Line>>);

const PARTS: [Part; 5] = [
    ("stats", stats::run),
    ("rebuild", rebuild::run),
    ("prune", prune::run),
    ("search", search::run),
    ("memory", memory::run),
];

/// Measures what `arguments` ask for and prints the table. An error at the end where a goal was missed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, &PARTS.map(|(name, _)| name))?;
    let data = Data::prepare(&options)?;
    let bench = Bench { options, data };
    let mut out = std::io::stdout().lock();
    let measured = format!(
        "Database of {:.0} MiB, {} runs of each side by turns, warm page cache",
        table::mib(bench.data.bytes()?),
        bench.options.runs
    );
    writeln!(out, "{}", table::head(&measured))?;
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
