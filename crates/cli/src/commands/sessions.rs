//! `headwater sessions`: the list of sessions.

use clap::ValueEnum;
use headwater_upkeep::sessions::{self, Archived, SessionCounts, SessionQuery, SessionSort, SessionSummary};
use headwater_upkeep::{ReadDatabase, ReadError};

use crate::app::App;
use crate::clock;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::listing::{Fixed, Listing};
use crate::render::size::{count, size};
use crate::render::text::printable;
use crate::render::time::age;
use crate::status::Status;

/// List sessions with their size, age and state.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: headwater sessions --sort size --limit 20")]
pub(crate) struct Args {
    /// Only sessions of this project.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Only sessions that work in this directory or below it.
    #[arg(long, value_name = "DIR")]
    directory: Option<String>,
    /// What to do with archived sessions.
    #[arg(long, value_name = "WHICH", default_value = "included")]
    archived: Which,
    /// Only sessions that no other session started.
    #[arg(long)]
    roots: bool,
    /// The order.
    #[arg(long, value_name = "ORDER", default_value = "used")]
    sort: Order,
    /// At most this many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

/// What a listing does with archived sessions.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// List them with the others.
    Included,
    /// Leave them out.
    Excluded,
    /// List nothing else.
    Only,
}

/// The order of a listing.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    /// Last used first.
    Used,
    /// Largest first.
    Size,
    /// Newest first.
    Created,
}

const COLUMNS: [Fixed; 5] = [
    Fixed { title: "Session", width: 30, is_figure: false },
    Fixed { title: "Used", width: 6, is_figure: true },
    Fixed { title: "Size", width: 10, is_figure: true },
    Fixed { title: "Messages", width: 8, is_figure: true },
    Fixed { title: "State", width: 9, is_figure: false },
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let database = ReadDatabase::open(&app.database()?)?;
    let watch = Watch::new(app.cancel.clone());
    let listing = Listing { fixed: &COLUMNS, last: "Title", width: app.out.width() };
    let now = clock::now();
    let out = &mut app.out;
    let mut is_first = true;
    let mut show = |session: SessionSummary, out: &mut Output| {
        if out.is_json() {
            return out.item("session", &session);
        }
        if is_first {
            is_first = false;
            out.line(listing.header())?;
        }
        out.line(line(&session, &listing, now))
    };
    let mut unwritten = None;
    let listed = sessions::list(&database, &args.query(), &watch, |session| {
        watch.end();
        show(session, out).map_err(|failure| {
            unwritten = Some(failure);
            ReadError::Cancelled
        })
    });
    watch.end();
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    database.finish()?;
    let counts = listed?;
    let status = if counts.listed == 0 { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, &counts)?;
    } else {
        close(counts, &mut app.out)?;
    }
    Ok(status)
}

impl Args {
    fn query(&self) -> SessionQuery {
        SessionQuery {
            project: self.project.clone(),
            directory: self.directory.clone(),
            archived: match self.archived {
                Which::Included => Archived::Included,
                Which::Excluded => Archived::Excluded,
                Which::Only => Archived::Only,
            },
            roots_only: self.roots,
            sort: match self.sort {
                Order::Used => SessionSort::LastUsed,
                Order::Size => SessionSort::Bytes,
                Order::Created => SessionSort::Created,
            },
            limit: self.limit.and_then(|limit| usize::try_from(limit).ok()),
        }
    }
}

fn line(session: &SessionSummary, listing: &Listing<'_>, now: headwater_model::UnixMillis) -> String {
    let cells = [
        printable(&session.id).into_owned(),
        age(session.last_used, now),
        size(session.bytes.total),
        count(session.messages),
        state(session).to_owned(),
    ];
    let title = session.title.as_deref().unwrap_or_default();
    let indent = if session.parent.is_some() { "↳ " } else { "" };
    listing.line(&cells, &format!("{indent}{}", printable(title)))
}

fn state(session: &SessionSummary) -> &'static str {
    let state = session.state;
    match () {
        () if state.executing => "running",
        () if state.compacting => "compacts",
        () if state.revert_staged => "reverting",
        () if state.input_waiting => "waiting",
        () if session.archived.is_some() => "archived",
        () => "",
    }
}

fn close(counts: SessionCounts, out: &mut Output) -> Result<(), Failure> {
    let SessionCounts { sessions, matching, listed, unreadable } = counts;
    if listed == 0 {
        out.line(if sessions == 0 { "no sessions in this database" } else { "no session matches" })?;
    } else if listed < matching {
        out.line(format_args!("{} of {} sessions", count(listed), count(matching)))?;
    }
    if unreadable > 0 {
        out.line(format_args!("{} rows have no readable id and are not listed", count(unreadable)))?;
    }
    Ok(())
}
