//! `headwater conversation check`: what is wrong, or odd, in a store.

use headwater_store::{Finding, Severity};
use serde::Serialize;

use super::place::Place;
use super::store;
use crate::app::App;
use crate::failure::{Failure, conversation as failure};
use crate::output::Output;
use crate::render::name::name;
use crate::render::size::count;
use crate::render::text::printable;
use crate::status::Status;

/// Look for damage, rows that belong to nothing, counters that count wrongly, and what else is odd. Reads everything, changes nothing.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(after_help = "Exit status 5 where an error was found.")]
pub(crate) struct Args {}

/// What was found.
#[derive(Serialize)]
struct Checked {
    store: String,
    /// The worst of the findings; none where nothing was found.
    worst: Option<Severity>,
    findings: Vec<Finding>,
}

pub(crate) fn run(_: Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let shown = place.shown();
    let findings =
        store::read(&place, |history| history.check().map_err(|error| failure::of_read(&error, &shown)))?;
    let worst = findings.iter().map(|finding| finding.severity).max();
    let status = if worst == Some(Severity::Error) { Status::Damaged } else { Status::Done };
    app.out.ends_unread_with(status);
    let checked = Checked { store: shown, worst, findings };
    if app.out.is_json() {
        app.out.result(status, &checked)?;
    } else {
        show(&checked, &mut app.out)?;
    }
    Ok(status)
}

fn show(checked: &Checked, out: &mut Output) -> Result<(), Failure> {
    if checked.findings.is_empty() {
        return out.line(format_args!("{}: nothing is wrong", checked.store));
    }
    out.line(&checked.store)?;
    for finding in &checked.findings {
        let place = finding.table.map(|table| format!(" in {table}")).unwrap_or_default();
        let severity = name(&finding.severity);
        out.line(format_args!("{severity}: {}{place}, {} found", finding.code, count(finding.count)))?;
        out.line(format_args!("  {}", finding.advice))?;
        if !finding.examples.is_empty() {
            let examples: Vec<_> = finding.examples.iter().map(|example| printable(example)).collect();
            out.line(format_args!("  for instance {}", examples.join(", ")))?;
        }
    }
    Ok(())
}
