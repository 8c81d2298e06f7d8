//! `headwater conversation sessions`: the list of sessions.

use headwater_store::SessionOverview;
use serde::Serialize;

use super::place::Place;
use super::store;
use crate::app::App;
use crate::failure::{Failure, conversation as failure};
use crate::output::Output;
use crate::render::listing::{Fixed, Listing};
use crate::render::size::count;
use crate::render::text::printable;
use crate::status::Status;

/// List the sessions of the store, by id, with what they are about and where they are.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: headwater conversation sessions --limit 50 --after ses_1234")]
pub(crate) struct Args {
    /// Only sessions behind this id.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// At most this many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

/// How far the list went.
#[derive(Serialize)]
struct Listed {
    listed: u64,
    /// Whether sessions are behind the last one.
    has_more: bool,
}

/// Sessions that are read at a time.
const PAGE: u32 = 100;

const COLUMNS: [Fixed; 6] = [
    Fixed { title: "Session", width: 24, is_figure: false },
    Fixed { title: "Task", width: 16, is_figure: false },
    Fixed { title: "State", width: 12, is_figure: false },
    Fixed { title: "Messages", width: 8, is_figure: true },
    Fixed { title: "Revision", width: 8, is_figure: true },
    Fixed { title: "Last activity", width: 20, is_figure: false },
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let shown = place.shown();
    let App { out, cancel, .. } = app;
    let listing = Listing { fixed: &COLUMNS, last: "Title", width: out.width() };
    let listed = store::read(&place, |history| {
        let mut listed = Listed { listed: 0, has_more: true };
        let mut after = args.after.clone().unwrap_or_default();
        let mut left = args.limit.unwrap_or(u32::MAX);
        while listed.has_more && left > 0 {
            if cancel.is_cancelled() {
                return Err(Failure::cancelled("the list is not complete"));
            }
            let wanted = left.min(PAGE);
            // One more says whether there are more.
            let mut page =
                history.overview(&after, wanted + 1).map_err(|error| failure::of_read(&error, &shown))?;
            listed.has_more = page.len() > wanted as usize;
            page.truncate(wanted as usize);
            for session in &page {
                show(session, listed.listed == 0, &listing, out)?;
                listed.listed += 1;
                after.clone_from(&session.session.id);
            }
            left -= wanted;
        }
        Ok(listed)
    })?;
    let status = if listed.listed == 0 { Status::Nothing } else { Status::Done };
    if app.out.is_json() {
        app.out.result(status, &listed)?;
    } else if listed.listed == 0 {
        app.out.line(if args.after.is_some() { "no more sessions" } else { "no sessions in this store" })?;
    } else if listed.has_more {
        app.out.line(format_args!("{} shown; there are more", count(listed.listed)))?;
    }
    Ok(status)
}

fn show(
    session: &SessionOverview,
    is_first: bool,
    listing: &Listing<'_>,
    out: &mut Output,
) -> Result<(), Failure> {
    if out.is_json() {
        return out.item("session", session);
    }
    if is_first {
        out.line(listing.header())?;
    }
    let row = &session.session;
    let cells = [
        printable(&row.id).into_owned(),
        printable(&row.task_id).into_owned(),
        printable(&row.state).into_owned(),
        count(session.messages),
        session.revision.to_string(),
        super::time(session.last_activity),
    ];
    let title = if row.name.is_empty() { &session.task_title } else { &row.name };
    out.line(listing.line(&cells, &printable(title)))
}
