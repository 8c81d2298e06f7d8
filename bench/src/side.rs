//! One side of a comparison.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use headwater_testkit::measure;
use serde_json::Value;

/// Runs of one side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    seconds: Vec<f64>,
    /// Largest peak of memory over the runs, in bytes.
    pub(crate) peak_bytes: u64,
}

impl Side {
    /// Runs `command` once more. It must end with one of these exit codes; answers with what it printed.
    pub(crate) fn run(&mut self, command: &mut Command, codes: &[i32]) -> Result<String> {
        let begun = Instant::now();
        let measured = measure::run(command);
        self.add(begun.elapsed().as_secs_f64());
        self.peak_bytes = self.peak_bytes.max(measured.peak_bytes);
        let code = measured.output.status.code();
        let said = String::from_utf8_lossy(&measured.output.stderr);
        ensure!(
            code.is_some_and(|code| codes.contains(&code)),
            "{} ended with {}: {}",
            command.get_program().display(),
            measured.output.status,
            said.trim()
        );
        Ok(String::from_utf8(measured.output.stdout)?)
    }

    /// Adds a time that was measured elsewhere.
    pub(crate) fn add(&mut self, seconds: f64) {
        self.seconds.push(seconds);
    }

    pub(crate) fn best(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// The last line of `--json` output: the command's result.
pub(crate) fn result(printed: &str) -> Result<Value> {
    let last = printed.lines().last().unwrap_or_default();
    let mut line: Value = serde_json::from_str(last)?;
    ensure!(line["result"].is_object(), "the command printed no result");
    Ok(line["result"].take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_and_median_of_the_runs() {
        let mut side = Side::default();
        for seconds in [3.0, 1.0, 2.0, 9.0, 4.0] {
            side.add(seconds);
        }
        assert!((side.best() - 1.0).abs() < f64::EPSILON && (side.median() - 3.0).abs() < f64::EPSILON);
    }
}
