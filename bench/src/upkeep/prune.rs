//! `prune` in place, in steps that a running server does not feel, against one statement that blocks it.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Bench, peers};
use crate::side::{Side, result};
use crate::table::{Line, mib};

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    let (mut longest_lock_ms, mut log_bytes_max) = (0.0_f64, 0_u64);
    let scratch = bench.data.scratch()?;
    let gone = scratch.path().join("gone.db");
    for run in 0..bench.options.runs {
        let copy = bench.data.copy()?;
        let mut command = Command::new(peers::headwater()?);
        command.env("XDG_STATE_HOME", copy.folder().join("state")).arg("--db").arg(&copy.path);
        let printed =
            ours.run(command.args(["--json", "prune", "--yes", "--class", "superseded-events"]), &[0])?;
        let report = result(&printed)?;
        let lock = find(&report, "longest_lock_us")
            .and_then(serde_json::Value::as_f64)
            .context("longest_lock_us of the report")?;
        let log = find(&report, "log_bytes_max")
            .and_then(serde_json::Value::as_u64)
            .context("log_bytes_max of the report")?;
        longest_lock_ms = longest_lock_ms.max(lock / 1000.0);
        log_bytes_max = log_bytes_max.max(log);
        if run == 0 {
            let sql = format!(
                "ATTACH '{}' AS b; ATTACH '{}' AS a;
                 CREATE TABLE gone AS SELECT rowid AS row FROM b.event WHERE id NOT IN (SELECT id FROM a.event);
                 SELECT count(*) FROM gone;",
                bench.data.main.display(),
                copy.path.display()
            );
            let count = Side::default().run(Command::new(peers::sqlite3()).arg(&gone).arg(sql), &[0])?;
            ensure!(count.trim() != "0", "nothing was pruned");
        }
        drop(copy);
        let copy = bench.data.copy()?;
        let sql = format!(
            "ATTACH '{}' AS g; DELETE FROM main.event WHERE rowid IN (SELECT row FROM g.gone);",
            gone.display()
        );
        theirs.run(Command::new(peers::sqlite3()).arg(&copy.path).arg(sql), &[0])?;
    }
    let peak = ours.peak_bytes;
    Ok(vec![
        Line::Ratio {
            what: "`prune --class superseded-events` in place, with its plan".to_owned(),
            peer: "one DELETE of the same rows, sqlite3 shell",
            ours,
            theirs,
            goal: 2.0,
        },
        Line::Limit {
            what: "longest write lock of that prune".to_owned(),
            figure: longest_lock_ms,
            unit: "ms",
            goal: 100.0,
        },
        Line::Limit {
            what: "largest log of that prune".to_owned(),
            figure: mib(log_bytes_max),
            unit: "MiB",
            goal: 32.0,
        },
        Line::peak("`prune`", peak, 64.0),
    ])
}

/// The member `name`, wherever it stands.
fn find<'v>(value: &'v serde_json::Value, name: &str) -> Option<&'v serde_json::Value> {
    let members = value.as_object()?;
    members.get(name).or_else(|| members.values().find_map(|member| find(member, name)))
}
