//! `headwater show`: a session or a message, to read and to choose from.

use clap::ArgGroup;
use headwater_upkeep::show::{self, ShowOptions, ShownItem, ShownMessage, ShownText};
use headwater_upkeep::{ReadDatabase, ReadError};
use serde::Serialize;

use crate::app::App;
use crate::failure::Failure;
use crate::output::{Output, Pipe};
use crate::progress::Watch;
use crate::render::size::size;
use crate::render::text::{printable, printable_lines};
use crate::render::time::local;
use crate::status::Status;

/// Show the messages of a session: their text, and what else they are made of.
///
/// The number in brackets before an item is its index, by which `preview` and `prune` take it.
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).args(["session", "message"]))]
#[command(after_help = "Example: headwater show ses_1234 --technical | less")]
pub(crate) struct Args {
    /// The session.
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Only this message, of whatever session.
    #[arg(long, value_name = "ID")]
    message: Option<String>,
    /// Show reasoning, tool input, output and errors too, not only that they are there.
    #[arg(long)]
    technical: bool,
    /// Show every text to its end; otherwise 16 KiB of each.
    #[arg(long)]
    full: bool,
}

/// What was shown.
#[derive(Serialize)]
struct Shown {
    messages: u64,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let database = ReadDatabase::open(&app.database()?)?;
    let mut options = ShowOptions { technical: args.technical, ..ShowOptions::default() };
    if args.full && app.out.is_json() {
        options.text_bytes_max = usize::MAX;
    }
    let mut reader = Reader { database: &database, out: &mut app.out, is_full: args.full, messages: 0 };
    if let Some(message) = &args.message {
        let found = show::message(&database, message, options)?;
        reader.message(&found)?;
    }
    if let Some(session) = &args.session {
        let watch = Watch::new(app.cancel.clone());
        let mut unwritten = None;
        let ended = show::session(&database, session, options, &watch, |message| {
            reader.message(&message).map_err(|failure| {
                unwritten = Some(failure);
                ReadError::Cancelled
            })
        });
        if let Some(failure) = unwritten {
            return Err(failure);
        }
        database.ensure_unchanged()?;
        ended?;
    }
    let messages = reader.messages;
    database.finish()?;
    if app.out.is_json() {
        app.out.result(Status::Done, &Shown { messages })?;
    } else if messages == 0 {
        app.out.line("the session has no messages")?;
    }
    Ok(Status::Done)
}

/// Writes messages as they come.
struct Reader<'a> {
    database: &'a ReadDatabase,
    out: &'a mut Output,
    is_full: bool,
    messages: u64,
}

impl Reader<'_> {
    fn message(&mut self, message: &ShownMessage) -> Result<(), Failure> {
        self.messages += 1;
        if self.out.is_json() {
            return self.out.item("message", message);
        }
        self.out.heading(headline(message))?;
        for item in &message.items {
            self.item(item)?;
        }
        if message.items_left_out > 0 {
            self.out.line(format_args!("  ({} more items)", message.items_left_out))?;
        }
        Ok(())
    }

    fn item(&mut self, item: &ShownItem) -> Result<(), Failure> {
        self.out.line(format_args!("  [{}] {}", item.index, label(item)))?;
        match &item.text {
            Some(text) if text.is_cut && self.is_full => {
                let mut pipe = Pipe::escaped(self.out);
                let written = show::write_text(self.database, item, &mut pipe);
                pipe.end()?;
                written?;
                self.out.line("")
            }
            Some(text) => self.text(text),
            None => Ok(()),
        }
    }

    fn text(&mut self, text: &ShownText) -> Result<(), Failure> {
        if !text.text.is_empty() {
            self.out.line(printable_lines(text.text.trim_end_matches('\n')))?;
        }
        if text.is_cut {
            self.out.line(format_args!("  … cut here; --full shows all {}", size(text.stored_bytes)))?;
        }
        Ok(())
    }
}

fn headline(message: &ShownMessage) -> String {
    let mut words = vec![printable(&message.role).into_owned(), local(message.created), size(message.bytes)];
    words.extend(message.model.as_deref().map(|model| printable(model).into_owned()));
    words.extend(message.is_summary.then(|| "summary".to_owned()));
    words.extend(message.error.as_deref().map(|error| format!("failed: {}", printable(error))));
    if message.role == "assistant" && message.completed.is_none() {
        words.push("unfinished".to_owned());
    }
    words.extend((!message.is_readable).then(|| "row is not JSON".to_owned()));
    words.push(printable(&message.id).into_owned());
    words.join("  ")
}

fn label(item: &ShownItem) -> String {
    let mut words = vec![printable(&item.kind).into_owned()];
    let names = [&item.tool, &item.status, &item.title];
    words.extend(names.into_iter().flatten().map(|name| printable(name).into_owned()));
    words.push(format!("({})", size(item.bytes)));
    words.join(" ")
}
