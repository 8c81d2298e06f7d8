//! `headwater search`: finds a text in every conversation.

use std::ops::ControlFlow;

use anstyle::{AnsiColor, Style};
use headwater_model::SessionId;
use headwater_upkeep::ReadDatabase;
use headwater_upkeep::search::{self, Excerpt, Field, Hit, Query, SearchOptions, SearchTotals};

use crate::app::App;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::name::name;
use crate::render::size::count;
use crate::render::text::printable;
use crate::render::time::local;
use crate::status::Status;

/// Find a text in every conversation: literal, without regard to case, in any script.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "The query is text: no character in it has a meaning of its own. Exit status 4 where nothing is found.
Example: headwater search 'idempotency key'"
)]
pub(crate) struct Args {
    /// The text.
    #[arg(value_name = "TEXT")]
    query: String,
    /// Search tool calls, their output and diffs too.
    #[arg(long)]
    technical: bool,
    /// Search the copies in the event log too.
    #[arg(long)]
    events: bool,
    /// Only this session; repeat it for several.
    #[arg(long = "session", value_name = "ID")]
    sessions: Vec<SessionId>,
    /// At most this many hits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Oldest rows first; otherwise the latest.
    #[arg(long)]
    oldest_first: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let query = Query::new(&args.query).map_err(Failure::usage)?;
    let database = ReadDatabase::open(&app.database()?)?;
    let options = SearchOptions {
        with_technical: args.technical,
        with_events: args.events,
        sessions: args.sessions.clone(),
        limit: args.limit,
        oldest_first: args.oldest_first,
    };
    let watch = Watch::new(app.cancel.clone());
    let mut unwritten = None;
    let out = &mut app.out;
    let searched = search::run(&database, &query, &options, &watch, &mut |hit| {
        watch.end();
        match write(&hit, out) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                unwritten = Some(failure);
                ControlFlow::Break(())
            }
        }
    });
    watch.end();
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    database.finish()?;
    let totals = searched?;
    close(&totals, app)
}

fn close(totals: &SearchTotals, app: &mut App) -> Result<Status, Failure> {
    if totals.is_cancelled {
        return Err(Failure::cancelled("the search was stopped; there may be more hits"));
    }
    let status = if totals.hits == 0 { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, totals)?;
        return Ok(status);
    }
    match totals.hits {
        0 => app.out.line("nothing found")?,
        _ if totals.is_limited => app.out.line("\nthere may be more: --limit ended the search")?,
        hits => {
            let rows = count(totals.rows_matched);
            app.out.line(format_args!("\n{} places in {rows} rows", count(hits)))?;
        }
    }
    if totals.rows_unreadable > 0 {
        app.out.line(format_args!("{} rows could not be decoded", count(totals.rows_unreadable)))?;
    }
    Ok(status)
}

fn write(hit: &Hit, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        return out.item("hit", hit);
    }
    let mut words = vec![printable(hit.title.as_deref().unwrap_or("(no session)")).into_owned()];
    words.extend(hit.time.map(local));
    let tool = hit.tool.as_deref().map(|tool| format!(" {}", printable(tool))).unwrap_or_default();
    let origin = if hit.field == Field::Title { String::new() } else { format!("{} ", name(&hit.origin)) };
    words.push(format!("{origin}{}{tool}", name(&hit.field)));
    words.push(printable(hit.message.as_deref().unwrap_or(&hit.session)).into_owned());
    if hit.occurrences > 1 {
        words.push(format!("{} matches", count(hit.occurrences)));
    }
    out.heading(words.join("  "))?;
    let excerpt = excerpt(&hit.excerpt, out);
    out.line(format_args!("  {excerpt}"))
}

/// The excerpt on one line, its match in colour where there is colour.
fn excerpt(excerpt: &Excerpt, out: &Output) -> String {
    let part = |from: usize, to: usize| {
        let characters = excerpt.text.chars().skip(from).take(to.saturating_sub(from));
        let text: String =
            characters.map(|character| if character.is_whitespace() { ' ' } else { character }).collect();
        printable(&text).into_owned()
    };
    let style = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    let (start, end) = (excerpt.match_start, excerpt.match_end);
    format!("{}{}{}", part(0, start), out.styled(style, part(start, end)), part(end, usize::MAX))
}
