//! `headwater conversation show`: the messages or the turns of a session, page by page.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use headwater_model::conversation::{Author, MessageRecord, OrderKey, Selection, TurnRecord};
use headwater_model::{OrderTime, Revision, SessionId, WallTime};
use headwater_store::transfer::{Owner, Table};
use headwater_store::{Page, PageLimit, PageQuery, ReadError, Sort};
use serde::Serialize;

use super::AuthorName;
use super::place::Place;
use super::store::{self, History};
use crate::app::App;
use crate::failure::{Failure, conversation as failure};
use crate::output::Output;
use crate::render::text::{printable, printable_lines};
use crate::status::Status;

/// Show the messages of a session, or its turns, in their order, and the revision at which all of them were read.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: headwater conversation show ses_1234 --limit 20 --after msg_5678")]
pub(crate) struct Args {
    /// The session.
    #[arg(value_name = "SESSION")]
    session: SessionId,
    /// Its turns instead of its messages.
    #[arg(long, conflicts_with = "author")]
    turns: bool,
    /// Only messages of this author.
    #[arg(long, value_name = "WHO")]
    author: Option<AuthorName>,
    /// Only what comes behind this message or turn: its id, or the key that an earlier run gave.
    #[arg(long, value_name = "ID", conflicts_with = "before")]
    after: Option<String>,
    /// Only what comes before it, the nearest ones.
    #[arg(long, value_name = "ID")]
    before: Option<String>,
    /// At most this many [default: all, with --before 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// What was shown.
#[derive(Serialize)]
struct Ended {
    session: String,
    revision: Revision,
    shown: u64,
    has_more: bool,
    /// The key for `--after` or `--before` that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Records before a boundary where nobody says how many.
const BEFORE_DEFAULT: u64 = 20;

/// What separates time and id in a key.
const BETWEEN: char = ',';

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let shown = place.shown();
    let App { out, cancel, .. } = app;
    let answer = store::read(&place, |history| {
        let of_read = |error: ReadError| failure::of_read(&error, &shown);
        let query = args.query(history, &shown)?;
        let mut reading = Reading { args, history, query, out, answer: None };
        let mut go =
            || if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        if args.turns { reading.turns(&mut go) } else { reading.messages(&mut go) }.map_err(|stopped| {
            match stopped {
                Stopped::Read(error) => of_read(error),
                Stopped::Output(failure) => failure,
            }
        })?;
        if cancel.is_cancelled() {
            return Err(Failure::cancelled("not everything was shown"));
        }
        reading.answer.ok_or_else(|| failure::unknown_session(&shown))
    })?;
    if app.out.is_json() {
        app.out.result(Status::Done, &answer)?;
        return Ok(Status::Done);
    }
    if answer.shown == 0 {
        app.out.line(if args.turns { "no turns" } else { "no messages" })?;
    }
    app.out.line("")?;
    app.out.line(format_args!("revision {}", answer.revision))?;
    if let Some(next) = answer.next.filter(|_| answer.has_more) {
        let option = if args.before.is_some() { "--before" } else { "--after" };
        app.out.line(format_args!("there are more: {option} '{}'", printable(&next)))?;
    }
    Ok(Status::Done)
}

impl Args {
    /// The first page.
    fn query(&self, history: &dyn History, shown: &str) -> Result<PageQuery, Failure> {
        let authors = self.author.map(|author| BTreeSet::from([Author::from(author)]));
        let boundary = self.after.as_ref().or(self.before.as_ref());
        Ok(PageQuery {
            selection: Selection { task: None, authors },
            sort: if self.before.is_some() { Sort::Desc } else { Sort::Asc },
            limit: PageLimit::MAX,
            after: boundary.map(|text| self.key(text, history, shown)).transpose()?,
            ..PageQuery::of(self.session.clone())
        })
    }

    /// The place of a boundary: a key says it, an id is looked up.
    fn key(&self, text: &str, history: &dyn History, shown: &str) -> Result<OrderKey, Failure> {
        if let Some((time, id)) = text.split_once(BETWEEN) {
            let parsed = WallTime::parse_stored(time).map(|time| Some(time.order_time()));
            if let Ok(time) = if time.is_empty() { Ok(None) } else { parsed } {
                return Ok(OrderKey { time, id: id.to_owned() });
            }
        }
        let (table, column) =
            if self.turns { (Table::Turns, "started_at") } else { (Table::Messages, "created_at") };
        let mut found = None;
        let mut look = |row: headwater_store::transfer::StoredRow| {
            let time = row.text(column).and_then(|text| WallTime::parse_stored(text).ok());
            let is_of_session = row.session() == Some(self.session.as_str());
            found =
                is_of_session.then(|| OrderKey { time: time.map(WallTime::order_time), id: text.to_owned() });
            ControlFlow::Break(())
        };
        history
            .each_row(table, Owner::Key(text), &mut look)
            .map_err(|error| failure::of_read(&error, shown))?;
        found.ok_or_else(|| {
            let what = if self.turns { "turn" } else { "message" };
            let message = format_args!("{shown}: no such {what} in the session");
            Failure::new(Status::Usage, "unknown-boundary", message)
                .with_hint("name one of the session, or give the key that an earlier run wrote")
        })
    }
}

enum Stopped {
    Read(ReadError),
    Output(Failure),
}

/// Writes records as they come.
struct Reading<'a> {
    args: &'a Args,
    history: &'a dyn History,
    query: PageQuery,
    out: &'a mut Output,
    answer: Option<Ended>,
}

impl Reading<'_> {
    fn messages(&mut self, go: &mut dyn FnMut() -> ControlFlow<()>) -> Result<(), Stopped> {
        let history = self.history;
        self.pages(&mut |query| history.messages(query), MessageRecord::order_key, show_message, go)
    }

    fn turns(&mut self, go: &mut dyn FnMut() -> ControlFlow<()>) -> Result<(), Stopped> {
        let history = self.history;
        self.pages(&mut |query| history.turns(query), TurnRecord::order_key, show_turn, go)
    }

    fn pages<R>(
        &mut self,
        page: &mut dyn FnMut(&PageQuery) -> Result<Page<R>, ReadError>,
        key: fn(&R) -> OrderKey,
        show: fn(&R, &mut Output) -> Result<(), Failure>,
        go: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        let is_backward = self.query.sort == Sort::Desc;
        let mut left = self.args.limit.unwrap_or(if is_backward { BEFORE_DEFAULT } else { u64::MAX });
        // What is read backward is shown forward.
        let mut held = Vec::new();
        while left > 0 && go().is_continue() {
            if let Ok(limit) = PageLimit::new(left) {
                self.query.limit = limit;
            }
            let found = page(&self.query).map_err(Stopped::Read)?;
            self.query.expected = Some(found.revision);
            self.query.after = found.records.last().map(key).or(self.query.after.take());
            left = left.saturating_sub(found.records.len() as u64);
            let answer = self.answer.get_or_insert_with(|| Ended {
                session: self.query.session.to_string(),
                revision: found.revision,
                shown: 0,
                has_more: false,
                next: None,
            });
            answer.shown += found.records.len() as u64;
            answer.has_more = found.has_more;
            answer.next = self.query.after.as_ref().filter(|_| found.has_more).map(written);
            if is_backward {
                held.extend(found.records);
            } else {
                for record in &found.records {
                    show(record, self.out).map_err(Stopped::Output)?;
                }
            }
            if !found.has_more {
                break;
            }
        }
        held.iter().rev().try_for_each(|record| show(record, self.out)).map_err(Stopped::Output)
    }
}

/// A key as `--after` takes it.
fn written(key: &OrderKey) -> String {
    format!("{}{BETWEEN}{}", key.time.as_ref().map(OrderTime::as_str).unwrap_or_default(), key.id)
}

fn show_message(message: &MessageRecord, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        return out.item("message", message);
    }
    let mut words = vec![printable(&message.author_type).into_owned(), super::time(message.created_at)];
    if message.kind != "message" {
        words.push(printable(&message.kind).into_owned());
    }
    words.extend(message.prompt_index.map(|number| format!("prompt {number}")));
    words.push(printable(&message.id).into_owned());
    out.heading(words.join("  "))?;
    if message.content.is_empty() {
        return Ok(());
    }
    out.line(printable_lines(message.content.trim_end_matches('\n')))
}

fn show_turn(turn: &TurnRecord, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        return out.item("turn", turn);
    }
    let ended =
        turn.completed_at.map_or_else(|| "runs".to_owned(), |time| format!("ended {}", super::time(time)));
    out.line(format_args!("{}  began {}  {ended}", printable(&turn.id), super::time(turn.started_at)))
}
