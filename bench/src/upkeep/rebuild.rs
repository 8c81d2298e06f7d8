//! `rebuild` against deleting and vacuuming, and against `VACUUM INTO`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Bench, peers};
use crate::side::{Side, result};
use crate::table::{Line, mib};

/// The usual procedure, with the selection in it.
/// Begins with a line end, because the shell takes an argument that begins with a dash for an option.
const BY_HAND: &str = concat!("\n", include_str!("usual_procedure.sql"));

const CLASSES: [&str; 6] = ["--class", "superseded-events", "--class", "diffs", "--class", "technical"];

/// Tables that lose or rewrite rows by these classes.
const TABLES: [&str; 4] = ["event", "part", "message", "session_message"];

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let mut lines = by_class(bench)?;
    lines.append(&mut whole(bench)?);
    Ok(lines)
}

fn by_class(bench: &Bench) -> Result<Vec<Line>> {
    let (mut ours, mut by_hand, mut log_growth) = (Side::default(), Side::default(), 0.0_f64);
    let mut spared = Side::default();
    let scratch = bench.data.scratch()?;
    let survivors = scratch.path().join("survivors.db");
    let fate = scratch.path().join("fate.db");
    for run in 0..bench.options.runs {
        let copy = bench.data.copy()?;
        let report = rebuild(&mut ours, &copy.path, &CLASSES)?;
        log_growth = log_growth.max(report["log_growth"].as_f64().context("log_growth of the report")?);
        if run == 0 {
            fs::rename(&copy.path, &survivors)?;
            learn_fate(&bench.data.main, &survivors, &fate)?;
        }
        drop(copy);
        for (side, sql) in [(&mut by_hand, BY_HAND.to_owned()), (&mut spared, with_rows_named(&fate))] {
            let copy = bench.data.copy()?;
            side.run(Command::new(peers::sqlite3()).arg(&copy.path).arg(sql), &[0])?;
            if run == 0 {
                ensure_same(&survivors, &copy.path)?;
            }
        }
    }
    let peak = ours.peak_bytes;
    let what = "`rebuild` (superseded events, diffs, technical), synced, verified, taken over".to_owned();
    let compared = Line::Compared {
        what: what.clone(),
        peer: "the same with the rows and their new content handed to it, sqlite3 shell",
        ours: ours.clone(),
        theirs: spared,
    };
    let peer = "DELETE, UPDATE, VACUUM by the same rules, sqlite3 shell";
    Ok(vec![
        Line::Ratio { what, peer, ours, theirs: by_hand, goal: 0.20 },
        compared,
        Line::Limit {
            what: "log bytes added by `rebuild`".to_owned(),
            figure: log_growth,
            unit: "bytes",
            goal: 0.0,
        },
        Line::peak("`rebuild`", peak, 64.0),
    ])
}

/// Nothing dropped. The time to verify is given apart, since `VACUUM INTO` verifies nothing.
fn whole(bench: &Bench) -> Result<Vec<Line>> {
    let (mut ours, mut theirs, mut verify, mut process) =
        (Side::default(), Side::default(), Side::default(), Side::default());
    for _ in 0..bench.options.runs {
        let copy = bench.data.copy()?;
        let begun = std::time::Instant::now();
        let report = rebuild(&mut process, &copy.path, &["--force"])?;
        let seconds = begun.elapsed().as_secs_f64();
        let verified = report["seconds"]["verify"].as_f64().context("seconds of the report")?;
        ours.add(seconds - verified);
        verify.add(verified);
        drop(copy);
        let scratch = bench.data.scratch()?;
        let into = format!("VACUUM INTO '{}'", scratch.path().join("into.db").display());
        theirs.run(Command::new(peers::sqlite3()).arg("-readonly").arg(&bench.data.main).arg(into), &[0])?;
    }
    ours.peak_bytes = process.peak_bytes;
    let what = format!("`rebuild --force`, nothing dropped; verification apart ({:.2} s)", verify.best());
    Ok(vec![Line::Ratio { what, peer: "`VACUUM INTO`, sqlite3 shell", ours, theirs, goal: 1.2 }])
}

fn rebuild(side: &mut Side, database: &Path, arguments: &[&str]) -> Result<Value> {
    let mut command = Command::new(peers::headwater()?);
    command.arg("--db").arg(database).args(["--json", "rebuild", "--yes"]).args(arguments);
    result(&side.run(&mut command, &[0])?)
}

/// Writes into `fate` which rows of `before` are gone or changed in `after`, for the peer that is spared from finding them.
fn learn_fate(before: &Path, after: &Path, fate: &Path) -> Result<()> {
    let of_table = |table: &str| {
        format!(
            "CREATE TABLE gone_{table} AS SELECT rowid AS row FROM b.{table} WHERE id NOT IN (SELECT id FROM a.{table});
             CREATE TABLE changed_{table} (row INTEGER PRIMARY KEY, data);
             INSERT INTO changed_{table} SELECT o.rowid, n.data FROM b.{table} o JOIN a.{table} n USING (id)
               WHERE n.data <> o.data;"
        )
    };
    let attach = format!("ATTACH '{}' AS b; ATTACH '{}' AS a;", before.display(), after.display());
    let sql = attach + &TABLES.map(of_table).concat();
    Side::default().run(Command::new(peers::sqlite3()).arg(fate).arg(sql), &[0])?;
    Ok(())
}

fn with_rows_named(fate: &Path) -> String {
    let of_table = |table: &str| {
        format!(
            "DELETE FROM main.{table} WHERE rowid IN (SELECT row FROM f.gone_{table});
             UPDATE main.{table} SET data = (SELECT data FROM f.changed_{table} WHERE row = main.{table}.rowid)
               WHERE rowid IN (SELECT row FROM f.changed_{table});"
        )
    };
    format!("ATTACH '{}' AS f; {} DETACH f; VACUUM;", fate.display(), TABLES.map(of_table).concat())
}

/// Both sides must have kept the same rows with the same bytes.
fn ensure_same(ours: &Path, theirs: &Path) -> Result<()> {
    let of_table = |table: &str| {
        format!(
            "SELECT '{table}', (SELECT count(*) FROM a.{table}) - (SELECT count(*) FROM b.{table}),
               (SELECT count(*) FROM a.{table} x LEFT JOIN b.{table} y USING (id) WHERE y.data IS NOT x.data);"
        )
    };
    let attach = format!("ATTACH '{}' AS a; ATTACH '{}' AS b;", ours.display(), theirs.display());
    let sql = attach + &TABLES.map(of_table).concat();
    let found = Side::default().run(Command::new(peers::sqlite3()).args([":memory:", &sql]), &[0])?;
    let wanted = TABLES.map(|table| format!("{table}|0|0\n")).concat();
    ensure!(found == wanted, "the sides kept different rows: {found:?}");
    let sizes = [fs::metadata(ours)?.len(), fs::metadata(theirs)?.len()].map(mib);
    ensure!(sizes[0] <= sizes[1] * 1.05, "the rebuilt file is larger: {sizes:?} MiB");
    Ok(())
}
