//! Commands on a database with a message of 461 MiB, in a process that may have 200 MiB.

use std::process::Command;

use anyhow::{Result, ensure};
use headwater_testkit::measure;

use super::{Bench, peers};
use crate::table::Line;

/// Private memory that the process may have.
const LIMIT_BYTES: u64 = 200 << 20;

/// Commands that read, with the exit status each ends with.
const COMMANDS: [(&str, &[&str], i32); 6] = [
    ("`stats`", &["stats"], 0),
    ("`sessions`", &["sessions"], 0),
    ("`check`", &["check"], 0),
    ("`search`, default fields", &["search", "make it big"], 0),
    ("`search`, absent, all text and events", &["search", "--technical", "--events", "zzyzxqq"], 4),
    (
        "`search`, in every copy of the row",
        &["search", "--technical", "--events", "--limit", "5", "big.sql"],
        0,
    ),
];

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.data.giant()?;
    let headwater = peers::headwater()?;
    let mut lines = Vec::new();
    for (name, arguments, code) in COMMANDS {
        let mut command: Command = measure::limited(&headwater, LIMIT_BYTES);
        let measured = measure::run(command.arg("--db").arg(&database).arg("--json").args(arguments));
        let said = String::from_utf8_lossy(&measured.output.stderr);
        ensure!(
            measured.output.status.code() == Some(code),
            "{name} ended with {}: {said}",
            measured.output.status
        );
        let what = format!("{name} beside a row of 461 MiB, limited to 200 MiB,");
        lines.push(Line::peak(&what, measured.peak_bytes, 64.0));
    }
    Ok(lines)
}
