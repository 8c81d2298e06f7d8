//! SQLite's own check of pages, indexes and constraints.

use super::watch::watched;
use super::{Check, Code};
use crate::reading::ReadError;

/// Most problems that SQLite is asked to name.
const PROBLEMS_MAX: u32 = 1000;

pub(super) fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    let pragma = if check.options.quick { "quick_check" } else { "integrity_check" };
    let connection = check.database.connection();
    let findings = &mut check.findings;
    watched(connection, check.observer, "checking pages", None, || {
        let mut statement = connection.prepare(&format!("PRAGMA {pragma}({PROBLEMS_MAX})"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let problem: String = row.get(0)?;
            // One answer may hold several lines.
            for line in problem.lines().filter(|line| *line != "ok" && !line.starts_with("*** in database")) {
                findings.add(Code::PageDamage, None, line);
            }
        }
        Ok(())
    })
}
