//! Checks a database (P17): pages, references, rows that OpenCode cannot decode, orphans, trees, counters, settings. Changes nothing.
//!
//! A step that damage stops is a finding, and the next step goes on.

use std::path::PathBuf;

use headwater_model::ByteCount;
use serde::Serialize;

use crate::observer::Observer;
use crate::open::ReadDatabase;
use crate::reading::ReadError;
use crate::schema::Layouts;
use crate::survey::roster::Roster;

mod finding;
mod layout;
mod pages;
mod references;
mod rows;
mod sequences;
mod settings;
mod trees;
mod watch;

pub use finding::{Code, EXAMPLES_MAX, Finding, Severity};
pub use settings::{Migrations, Settings};

use finding::Findings;

/// How thorough a check is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// Leaves out what reads every page and payload: compares no index with its table and decodes no row.
    pub quick: bool,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The database.
    pub path: PathBuf,
    /// Size of the file.
    pub bytes: ByteCount,
    /// Size of the log beside it.
    pub log_bytes: ByteCount,
    /// Which layouts it holds.
    pub layouts: Layouts,
    /// How it is set up.
    pub settings: Settings,
    /// Rows whose payload was decoded as OpenCode does.
    pub rows_decoded: u64,
    /// Whether the check was thorough.
    pub quick: bool,
    /// What is not as it should be, worst first, then by code and table.
    pub findings: Vec<Finding>,
    /// The worst severity found.
    pub worst: Option<Severity>,
}

/// Checks `database`.
///
/// # Errors
/// [`ReadError::Cancelled`], and errors that are not about the content of the file. Damage is a finding.
pub fn run(
    database: &ReadDatabase,
    options: CheckOptions,
    observer: &dyn Observer,
) -> Result<CheckReport, ReadError> {
    let mut check = Check { database, options, observer, findings: Findings::default(), rows_decoded: 0 };
    let settings = settings::read(&mut check)?;
    layout::check(&mut check);
    check.step("pages", pages::check)?;
    check.step("foreign keys", references::foreign_keys)?;
    check.step("references", references::orphans)?;
    check.step("sessions", |check| {
        let roster = Roster::read(check.database.connection(), check.database.schema())?;
        trees::check(check, &roster);
        sequences::check(check, &roster)
    })?;
    if !options.quick {
        check.step("rows", rows::check)?;
    }
    let log_bytes = std::fs::metadata(database.file().beside("-wal")).map_or(0, |log| log.len());
    let findings = check.findings.into_sorted();
    Ok(CheckReport {
        path: database.file().path().to_owned(),
        bytes: ByteCount::new(std::fs::metadata(database.file().path()).map_or(0, |file| file.len())),
        log_bytes: ByteCount::new(log_bytes),
        layouts: database.schema().layouts(),
        settings,
        rows_decoded: check.rows_decoded,
        quick: options.quick,
        worst: findings.first().map(|finding| finding.severity),
        findings,
    })
}

/// A check under way.
struct Check<'a> {
    database: &'a ReadDatabase,
    options: CheckOptions,
    observer: &'a dyn Observer,
    findings: Findings,
    rows_decoded: u64,
}

impl Check<'_> {
    /// Runs one step; damage that stops it is noted.
    fn step(
        &mut self,
        name: &'static str,
        step: impl FnOnce(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if self.observer.is_cancelled() {
            return Err(ReadError::Cancelled);
        }
        match step(self) {
            Err(ReadError::Damaged(_)) => {
                self.findings.add(Code::StepStopped, None, name);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn has(&self, table: &str, column: &str) -> bool {
        self.database.schema().has(table, column)
    }
}

#[cfg(test)]
mod tests;
