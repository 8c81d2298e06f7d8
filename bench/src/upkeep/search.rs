//! `search` against grep on the whole file, and against a page scan in JavaScript on 2.x rows.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Bench, peers};
use crate::side::{Side, result};
use crate::table::Line;

/// A word that no database has.
const ABSENT: &str = "zzyzxqq";

/// A text that a few tool calls have.
const RARE: &str = "cargo test 77";

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut peak = 0;
    for (name, text) in [("an absent word", ABSENT), ("a rare one", RARE)] {
        let (mut ours, mut theirs) = (Side::default(), Side::default());
        for _ in 0..bench.options.runs {
            search(&mut ours, &bench.data.main, text, text == RARE)?;
            let mut grep = Command::new(peers::grep());
            theirs.run(grep.args(["-c", "-a", "-i", "-F", text]).arg(&bench.data.main), &[0, 1])?;
        }
        peak = peak.max(ours.peak_bytes);
        let what = format!("`search` for {name}, all text and all event copies");
        lines.push(Line::Ratio { what, peer: "`grep -c -a -i -F` on the file", ours, theirs, goal: 0.4 });
    }
    lines.push(page_scan(bench)?);
    lines.push(Line::peak("`search`", peak, 64.0));
    Ok(lines)
}

fn page_scan(bench: &Bench) -> Result<Line> {
    let database = bench.data.only_v2()?;
    let node = peers::node22(&bench.data.peers())?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/upkeep/page_scan.mjs");
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    for _ in 0..bench.options.runs {
        search(&mut ours, &database, ABSENT, false)?;
        let mut scan = Command::new(&node);
        let printed = theirs.run(scan.arg("--no-warnings").arg(&script).arg(&database).arg(ABSENT), &[0])?;
        ensure!(printed.trim() == "0", "the page scan found {printed}");
    }
    Ok(Line::Ratio {
        what: "`search` for an absent word in 2.x rows".to_owned(),
        peer: "page scan (32 rows a page, JSON parsed per row), Node 22",
        ours,
        theirs,
        goal: 0.2,
    })
}

fn search(side: &mut Side, database: &Path, text: &str, is_found: bool) -> Result<()> {
    let mut command = Command::new(peers::headwater()?);
    command.arg("--db").arg(database).args(["--json", "search", "--technical", "--events", text]);
    // Nothing found is the exit status 4.
    let printed = side.run(&mut command, &[if is_found { 0 } else { 4 }])?;
    let totals = result(&printed)?;
    ensure!((totals["hits"].as_u64() > Some(0)) == is_found, "{text}: {totals}");
    Ok(())
}
