//! What is measured and how often.

use anyhow::{Context, Result, bail, ensure};

/// The arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// Size of the database.
    pub(super) gib: f64,
    /// Runs of each side.
    pub(super) runs: usize,
    /// Only these parts; empty means all.
    only: Vec<String>,
}

impl Options {
    /// Reads `arguments`; `parts` are the names that `--only` takes.
    pub(super) fn parse(arguments: &[String], parts: &[&str]) -> Result<Self> {
        let mut options = Self { gib: 2.0, runs: 5, only: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--gib" => options.gib = value.parse().context("--gib takes a number")?,
                "--runs" => options.runs = value.parse().context("--runs takes a whole number")?,
                "--only" if parts.contains(&value.as_str()) => options.only.push(value.clone()),
                "--only" => bail!("--only takes one of {}", parts.join(", ")),
                _ => bail!("unknown argument {name}; there are --gib, --runs and --only"),
            }
        }
        ensure!(options.gib > 0.0 && options.gib <= 64.0, "--gib is between 0 and 64");
        ensure!((1..=100).contains(&options.runs), "--runs is between 1 and 100");
        Ok(options)
    }

    pub(super) fn is_wanted(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Options::parse(&arguments, &["stats", "search"])
    }

    #[test]
    fn arguments_are_checked() {
        assert_eq!(parse(&[]).unwrap(), Options { gib: 2.0, runs: 5, only: vec![] });
        let small = parse(&["--gib", "0.25", "--runs", "1", "--only", "search"]).unwrap();
        assert!(small.is_wanted("search") && !small.is_wanted("stats"));
        for wrong in [
            &["--gib"][..],
            &["--gib", "x"],
            &["--gib", "0"],
            &["--runs", "0"],
            &["--only", "all"],
            &["-x", "1"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
