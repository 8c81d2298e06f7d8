//! What is measured and how often.

use anyhow::{Context, Result, bail, ensure};

/// The arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    /// Size of the database, where the measurement has one that can be chosen.
    pub(crate) gib: Option<f64>,
    /// Runs of each side.
    pub(crate) runs: usize,
    /// Only these parts; empty means all.
    only: Vec<String>,
}

impl Options {
    /// Reads `arguments`; `parts` are the names that `--only` takes, and `gib` is the size where none is given.
    pub(crate) fn parse(arguments: &[String], parts: &[&str], gib: Option<f64>) -> Result<Self> {
        let known = if gib.is_some() { "--gib, --runs and --only" } else { "--runs and --only" };
        let mut options = Self { gib, runs: 5, only: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--gib" if gib.is_some() => {
                    options.gib = Some(value.parse().context("--gib takes a number")?);
                }
                "--runs" => options.runs = value.parse().context("--runs takes a whole number")?,
                "--only" if parts.contains(&value.as_str()) => options.only.push(value.clone()),
                "--only" => bail!("--only takes one of {}", parts.join(", ")),
                _ => bail!("unknown argument {name}; there are {known}"),
            }
        }
        ensure!(options.gib.is_none_or(|gib| gib > 0.0 && gib <= 64.0), "--gib is between 0 and 64");
        ensure!((1..=100).contains(&options.runs), "--runs is between 1 and 100");
        Ok(options)
    }

    pub(crate) fn is_wanted(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Options::parse(&arguments, &["stats", "search"], Some(2.0))
    }

    #[test]
    fn arguments_are_checked() {
        assert_eq!(parse(&[]).unwrap(), Options { gib: Some(2.0), runs: 5, only: vec![] });
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
