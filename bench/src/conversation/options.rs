//! What is measured and how often.

use anyhow::{Context, Result, bail, ensure};

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Runs of each side.
    pub(super) runs: usize,
    /// Only these parts; empty means all.
    only: Vec<String>,
}

impl Options {
    /// Reads `arguments`; `parts` are the names that `--only` takes.
    pub(super) fn parse(arguments: &[String], parts: &[&str]) -> Result<Self> {
        let mut options = Self { runs: 5, only: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--runs" => options.runs = value.parse().context("--runs takes a whole number")?,
                "--only" if parts.contains(&value.as_str()) => options.only.push(value.clone()),
                "--only" => bail!("--only takes one of {}", parts.join(", ")),
                _ => bail!("unknown argument {name}; there are --runs and --only"),
            }
        }
        ensure!((1..=100).contains(&options.runs), "--runs is between 1 and 100");
        Ok(options)
    }

    pub(super) fn is_wanted(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == part)
    }
}
