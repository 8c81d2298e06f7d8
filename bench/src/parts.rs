//! The parts of a measurement, and running those that are wanted.

use std::io::Write as _;

use anyhow::{Result, ensure};

use crate::options::Options;
use crate::table::{self, Line};

/// A part by its name; `B` is what the parts of a measurement share.
pub(crate) type Part<B> = (&'static str, fn(&B) -> Result<Vec<Line>>);

/// Runs the parts that `options` ask for and prints a table under a line that says what was `measured`. An error at the end where a goal was
/// missed.
pub(crate) fn run<B>(bench: &B, parts: &[Part<B>], options: &Options, measured: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", table::head(measured))?;
    let mut missed = 0;
    for (name, part) in parts {
        if options.is_wanted(name) {
            for line in part(bench)? {
                missed += usize::from(!line.is_met());
                writeln!(out, "{line}")?;
            }
        }
    }
    ensure!(missed == 0, "{missed} of the goals were missed");
    Ok(())
}
