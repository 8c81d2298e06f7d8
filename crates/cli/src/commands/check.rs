//! `headwater check`: the health of a database.

use headwater_upkeep::ReadDatabase;
use headwater_upkeep::check::{self, CheckOptions, CheckReport, Finding, Severity};

use crate::app::App;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::name::name;
use crate::render::size::{count, size};
use crate::render::text::printable;
use crate::status::Status;

/// Check a database: pages, references, rows that OpenCode cannot decode, counters, leftovers, settings.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(after_help = "Exit status 5 where a finding is an error; warnings and notes are status 0.")]
pub(crate) struct Args {
    /// Leave out what reads every page and payload.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: Args, app: &mut App) -> Result<Status, Failure> {
    let database = ReadDatabase::open(&app.database()?)?;
    let watch = Watch::new(app.cancel.clone());
    let checked = check::run(&database, CheckOptions { quick: args.quick }, &watch);
    watch.end();
    database.finish()?;
    let report = checked?;
    let status = if report.worst == Some(Severity::Error) { Status::Damaged } else { Status::Done };
    app.out.ends_unread_with(status);
    if app.out.is_json() {
        app.out.result(status, &report)?;
    } else {
        show(&report, &mut app.out)?;
    }
    Ok(status)
}

fn show(report: &CheckReport, out: &mut Output) -> Result<(), Failure> {
    let settings = &report.settings;
    let layouts = match (report.layouts.v1, report.layouts.v2) {
        (true, true) => "1.x and 2.x",
        (true, false) => "1.x",
        (false, _) => "2.x",
    };
    let path = report.path.to_string_lossy();
    out.line(format_args!(
        "{}: layout {layouts}, {}, log {}",
        printable(&path),
        size(report.bytes),
        size(report.log_bytes)
    ))?;
    out.line(format_args!(
        "{} pages of {} bytes, {} free; journal mode {}",
        settings.pages, settings.page_bytes, settings.free_pages, settings.journal_mode
    ))?;
    for finding in &report.findings {
        show_finding(finding, out)?;
    }
    let rows = count(report.rows_decoded);
    out.line("")?;
    match report.worst {
        None if report.quick => out.line("no fault found; payloads and indexes were not looked at"),
        None => out.line(format_args!("no fault found; {rows} rows decoded as OpenCode does")),
        Some(Severity::Note) => out.line("no fault found"),
        Some(Severity::Warning) => out.line("OpenCode works with this database; see the warnings"),
        Some(Severity::Error) => out.line("something is broken; see the errors"),
    }
}

fn show_finding(finding: &Finding, out: &mut Output) -> Result<(), Failure> {
    let table = finding.table.as_deref().map(|table| format!(" in {}", printable(table))).unwrap_or_default();
    out.heading(format_args!(
        "{}: {} × {}{table}",
        name(&finding.severity),
        count(finding.count),
        name(&finding.code)
    ))?;
    for example in &finding.examples {
        out.line(format_args!("  {}", printable(example)))?;
    }
    out.line(format_args!("  {}", finding.advice))
}
