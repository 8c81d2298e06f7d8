//! `stats` against the queries that a user would write, and against the tool that exists for it.

use std::process::Command;

use anyhow::{Result, ensure};

use super::{Bench, peers};
use crate::side::Side;
use crate::table::Line;

/// What a user asks the shell to learn what eats the space.
const NAIVE: &str = "
SELECT type, count(*), sum(length(data)) FROM event GROUP BY 1;
SELECT json_extract(data, '$.type'), json_extract(data, '$.tool'), count(*), sum(length(data)) FROM part GROUP BY 1, 2;
SELECT json_extract(data, '$.role'), count(*), sum(length(data)) FROM message GROUP BY 1;
SELECT session_id, sum(length(data)) FROM part GROUP BY 1;
SELECT aggregate_id, sum(length(data)) FROM event GROUP BY 1;
SELECT s.project_id, sum(length(p.data)) FROM part p JOIN session s ON s.id = p.session_id GROUP BY 1;
";

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let (headwater, sqlite3, ocdbc) =
        (peers::headwater()?, peers::sqlite3(), peers::ocdbc(&bench.data.peers())?);
    let (mut ours, mut naive, mut tool) = (Side::default(), Side::default(), Side::default());
    for _ in 0..bench.options.runs {
        ours.run(Command::new(&headwater).arg("--db").arg(&bench.data.main).args(["--json", "stats"]), &[0])?;
        let printed =
            naive.run(Command::new(&sqlite3).arg("-readonly").arg(&bench.data.main).arg(NAIVE), &[0])?;
        ensure!(printed.contains("message.part.updated.1"), "the naive queries found no events");
        tool.run(Command::new(&ocdbc).args(["--no-color", "analyze", "--path"]).arg(&bench.data.main), &[0])?;
    }
    let what = || "`stats`, with what each class would free".to_owned();
    let peak = ours.peak_bytes;
    Ok(vec![
        Line::Ratio {
            what: what(),
            peer: "six naive queries, sqlite3 shell",
            ours: ours.clone(),
            theirs: naive,
            goal: 0.08,
        },
        Line::Ratio { what: what(), peer: "PyPI `ocdbc analyze`", ours, theirs: tool, goal: 0.10 },
        Line::peak("`stats`", peak, 64.0),
    ])
}
