//! `headwater conversation post`: writes a message.

use std::io::{self, Read};
use std::ops::ControlFlow;

use headwater_model::conversation::{Author, Operation, Receipt};
use headwater_model::{MessageId, Revision, SessionId, TaskId, TurnId, WallTime};
use headwater_store::transfer::{Owner, StoredRow, Table, Value};
use headwater_store::{
    BadMutation, Batch, ContentLimit, Mutation, NewMessage, NewTurn, PageQuery, ReadError, Sort, WriteError,
    WriteErrorKind, rules,
};
use serde::Serialize;

use super::AuthorName;
use super::place::Place;
use super::store::{self, History, Writer};
use crate::app::App;
use crate::clock;
use crate::failure::{Failure, conversation as failure};
use crate::render::size::counted;
use crate::render::text::printable;
use crate::status::Status;

/// Write a message into a session, and print the receipt: from which revision to which, and what happened.
///
/// A prompt begins a turn; what an agent writes goes into the newest turn. The same call with the same --id writes once.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Example: headwater conversation post ses_1 'what is left to do?' --create --task release"
)]
pub(crate) struct Args {
    /// The session.
    #[arg(value_name = "SESSION")]
    session: SessionId,
    /// The message; without it, or as `-`, it is read from standard input.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// Who writes.
    #[arg(long, value_name = "WHO", default_value = "user")]
    author: AuthorName,
    /// The name or id of who writes.
    #[arg(long, value_name = "TEXT", default_value = "")]
    author_id: String,
    /// The id of the message [default: a new one].
    #[arg(long, value_name = "ID")]
    id: Option<MessageId>,
    /// The turn that the message belongs to; one that is not there begins.
    #[arg(long, value_name = "ID")]
    turn: Option<TurnId>,
    /// What kind of message it is.
    #[arg(long = "type", value_name = "KIND", default_value = rules::PLAIN)]
    kind: String,
    /// Make the session where it is not there.
    #[arg(long)]
    create: bool,
    /// With --create: the task that owns the session; made where it is not there [default: the id of the session].
    #[arg(long, value_name = "ID", requires = "create")]
    task: Option<TaskId>,
    /// With --create: the workspace of a task that is made.
    #[arg(long, value_name = "ID", requires = "create")]
    workspace: Option<String>,
    /// With --create: what the session is called.
    #[arg(long, value_name = "TEXT", requires = "create", default_value = "")]
    name: String,
}

/// What a program learns of the receipt. No content.
#[derive(Serialize)]
struct Posted<'a> {
    session: &'a str,
    message: &'a str,
    turn: &'a str,
    /// Whether the session was made.
    created: bool,
    base: Revision,
    revision: Revision,
    /// Whether the operations are everything that happened between the two.
    complete: bool,
    operations: Vec<Happened<'a>>,
}

#[derive(Serialize)]
struct Happened<'a> {
    kind: &'static str,
    entity: &'static str,
    id: &'a str,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let place = Place::of(app)?;
    let shown = place.shown();
    let content = args.content()?;
    args.ensure_writable(&content)?;
    let found =
        store::read(&place, |history| args.look(history).map_err(|error| failure::of_read(&error, &shown)))?;
    if !found.is_there && !args.create {
        return Err(failure::of_write(&WriteErrorKind::UnknownSession.into(), &shown));
    }
    let message = args.id.clone().map_or_else(|| new_id("msg"), |id| Ok(id.to_string()))?;
    let turn = match (&args.turn, found.newest_turn) {
        (Some(turn), _) => turn.to_string(),
        (None, Some(newest)) if Author::from(args.author) == Author::Agent => newest,
        // By the message's id, so that a repeated call names the same turn.
        (None, _) => format!("turn_{message}"),
    };
    let writer = Writer::open(&place)?;
    let ids = Ids { message, turn };
    let written = if found.is_there {
        args.post(&writer, &ids, content)
    } else {
        args.create(&writer, &ids, &content, &found.owners)
    };
    writer.close();
    let receipt = written.map_err(|error| failure::of_write(&error, &shown))?;
    report(&receipt, &ids, !found.is_there, app)?;
    Ok(Status::Done)
}

/// What is there already.
#[derive(Default)]
struct Found {
    is_there: bool,
    newest_turn: Option<String>,
    /// The owners of a session that is to be made, of those that are named.
    owners: Vec<Table>,
}

/// The ids of what is written.
struct Ids {
    message: String,
    turn: String,
}

impl Args {
    fn look(&self, history: &dyn History) -> Result<Found, ReadError> {
        if history.session(&self.session)?.is_some() {
            let newest = PageQuery { sort: Sort::Desc, ..PageQuery::of(self.session.clone()) };
            let newest_turn = history.turns(&newest)?.records.into_iter().next().map(|turn| turn.id);
            return Ok(Found { is_there: true, newest_turn, owners: Vec::new() });
        }
        let mut found = Found::default();
        let named = [(Table::Tasks, Some(self.task())), (Table::Workspaces, self.workspace.as_deref())];
        for (table, key) in named.into_iter().filter_map(|(table, key)| Some((table, key?))) {
            let mut see = |_| {
                found.owners.push(table);
                ControlFlow::Break(())
            };
            history.each_row(table, Owner::Key(key), &mut see)?;
        }
        Ok(found)
    }

    /// The task of a session that is made.
    fn task(&self) -> &str {
        self.task.as_ref().map_or(self.session.as_str(), TaskId::as_str)
    }

    /// The text of the message: as given, or all of standard input, no more than a message may have.
    fn content(&self) -> Result<String, Failure> {
        if let Some(text) = self.text.as_deref().filter(|text| *text != "-") {
            return Ok(text.to_owned());
        }
        let limit = ContentLimit::default().0;
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(limit.get() + 1).read_to_end(&mut bytes);
        read.map_err(|error| {
            Failure::new(Status::Other, "io", format_args!("cannot read the message: {error}"))
                .with_hint("nothing was changed")
        })?;
        String::from_utf8(bytes).map_err(|_| {
            Failure::new(Status::Usage, "not-utf8", "the message is not UTF-8")
                .with_hint("nothing was changed")
        })
    }

    /// Refuses what no store takes, before anything is opened.
    fn ensure_writable(&self, content: &str) -> Result<(), Failure> {
        let refused = |reason| failure::of_write(&WriteErrorKind::Refused { index: 0, reason }.into(), "");
        rules::ensure_fits(content.len() as u64, ContentLimit::default()).map_err(refused)?;
        let ids = [self.session.as_str(), self.name.as_str(), self.author_id.as_str(), self.kind.as_str()];
        let mut all = ids.into_iter().chain([content]).chain(self.workspace.as_deref());
        all.try_for_each(rules::ensure_text).map_err(refused)
    }

    fn post(&self, writer: &Writer, ids: &Ids, content: String) -> Result<Receipt, WriteError> {
        let (message, turn) = ids.parsed()?;
        let new_turn = NewTurn {
            id: turn.clone(),
            execution_profile_id: String::new(),
            route_generation: 0,
            metadata: "{}".to_owned(),
            started_at: None,
        };
        let new = NewMessage {
            id: message,
            turn,
            author: self.author.into(),
            author_id: self.author_id.clone(),
            kind: self.kind.clone(),
            content,
            requests_input: false,
            metadata: "{}".to_owned(),
            created_at: None,
        };
        let batch = Batch {
            session: self.session.clone(),
            at: clock::wall(),
            mutations: vec![Mutation::CreateTurn(new_turn), Mutation::CreateMessage(new)],
        };
        let written = writer.apply(batch)?;
        Ok(one(written.receipts)?)
    }

    /// Session, turn and message in one transaction, with the task and the workspace where those are new.
    fn create(
        &self,
        writer: &Writer,
        ids: &Ids,
        content: &str,
        present: &[Table],
    ) -> Result<Receipt, WriteError> {
        // Refuses ids that are none.
        ids.parsed()?;
        let new = New { at: clock::wall(), session: self.session.as_str(), task: self.task(), ids };
        let owners = new.owners(self).into_iter().filter(|row| !present.contains(&row.table));
        let rows = owners.chain(new.history(self, content)).collect();
        Ok(one(writer.import(rows)?.receipts)?)
    }
}

impl Ids {
    fn parsed(&self) -> Result<(MessageId, TurnId), WriteErrorKind> {
        let refused = |_| WriteErrorKind::Refused { index: 0, reason: BadMutation::NotStorable };
        let message = MessageId::new(self.message.as_str()).map_err(refused)?;
        Ok((message, TurnId::new(self.turn.as_str()).map_err(refused)?))
    }
}

/// The receipt of the one session.
fn one(receipts: Vec<Receipt>) -> Result<Receipt, WriteErrorKind> {
    receipts.into_iter().next().ok_or_else(|| WriteErrorKind::Storage("no receipt".into()))
}

/// Rows of a session that begins.
struct New<'a> {
    at: WallTime,
    session: &'a str,
    task: &'a str,
    ids: &'a Ids,
}

impl New<'_> {
    /// The workspace and the task, each to be made where it is not there.
    fn owners(&self, args: &Args) -> Vec<StoredRow> {
        let at = self.at.cut_to_micros().stored_text();
        let workspace = args.workspace.as_deref().map(|id| {
            row(Table::Workspaces, &[("id", id), ("name", ""), ("created_at", &at), ("updated_at", &at)])
        });
        let title = if args.name.is_empty() { self.task } else { &args.name };
        let mut columns = vec![("id", self.task), ("title", title), ("created_at", &at), ("updated_at", &at)];
        columns.extend(args.workspace.as_deref().map(|id| ("workspace_id", id)));
        workspace.into_iter().chain([row(Table::Tasks, &columns)]).collect()
    }

    fn history(&self, args: &Args, content: &str) -> Vec<StoredRow> {
        let at = self.at.cut_to_micros().stored_text();
        let times = [("created_at", at.as_str()), ("updated_at", &at)];
        let owners = [("task_session_id", self.session), ("task_id", self.task)];
        let session = row(
            Table::Sessions,
            &[
                ("id", self.session),
                ("task_id", self.task),
                ("name", &args.name),
                ("state", "CREATED"),
                ("started_at", &at),
                ("updated_at", &at),
            ],
        );
        let turn =
            [&[("id", self.ids.turn.as_str()), ("started_at", &at), ("metadata", "{}")][..], &owners, &times]
                .concat();
        let author = Author::from(args.author);
        let message = [
            &[
                ("id", self.ids.message.as_str()),
                ("turn_id", &self.ids.turn),
                ("author_type", author.stored()),
                ("author_id", &args.author_id),
                ("type", &args.kind),
                ("metadata", "{}"),
                ("content", content),
            ][..],
            &owners,
            &times,
        ]
        .concat();
        let number = i64::from(author == Author::User);
        let message = with_number(row(Table::Messages, &message), "prompt_seq", number);
        let mut rows = vec![session, row(Table::Turns, &turn), message];
        if number > 0 {
            rows.push(with_number(row(Table::PromptSeq, &owners[..1]), "last_seq", number));
        }
        rows
    }
}

fn row(table: Table, given: &[(&str, &str)]) -> StoredRow {
    let value = |column: &str| {
        let found = given.iter().find(|(name, _)| *name == column);
        found.map_or(Value::Absent, |(_, text)| Value::Text((*text).to_owned()))
    };
    StoredRow { table, values: table.columns().iter().map(|(name, _)| value(name)).collect() }
}

fn with_number(mut row: StoredRow, column: &str, number: i64) -> StoredRow {
    let columns = row.table.columns().iter().zip(&mut row.values);
    for ((name, _), value) in columns {
        if *name == column {
            *value = Value::Integer(number);
        }
    }
    row
}

/// A new id: the time, so that ids of one session sort as they were made, and chance.
fn new_id(kind: &str) -> Result<String, Failure> {
    let mut chance = [0_u8; 8];
    getrandom::fill(&mut chance).map_err(|error| {
        Failure::new(Status::Other, "io", format_args!("no randomness: {error}"))
            .with_hint("nothing was changed")
    })?;
    Ok(format!("{kind}_{:012x}{:016x}", clock::now().get(), u64::from_be_bytes(chance)))
}

fn report(receipt: &Receipt, ids: &Ids, created: bool, app: &mut App) -> Result<(), Failure> {
    let happened = |operation: &Operation| match operation {
        Operation::MessageUpsert { .. } => ("upsert", "message"),
        Operation::MessageRemove { .. } => ("remove", "message"),
        Operation::TurnUpsert { .. } => ("upsert", "turn"),
        Operation::TurnRemove { .. } => ("remove", "turn"),
    };
    let operations = receipt.operations().unwrap_or_default().iter();
    let operations: Vec<_> = operations
        .map(|operation| {
            let (kind, entity) = happened(operation);
            Happened { kind, entity, id: operation.id() }
        })
        .collect();
    let posted = Posted {
        session: receipt.session.as_str(),
        message: &ids.message,
        turn: &ids.turn,
        created,
        base: receipt.base,
        revision: receipt.revision,
        complete: receipt.operations().is_some(),
        operations,
    };
    if app.out.is_json() {
        return app.out.result(Status::Done, &posted);
    }
    let what = if receipt.is_step() {
        counted(posted.operations.len() as u64, ["operation", "operations"])
    } else {
        "it was there already".to_owned()
    };
    app.out.line(format_args!(
        "{}: revision {} to {}, {what}",
        printable(posted.session),
        posted.base,
        posted.revision
    ))?;
    app.out.line(format_args!("message {} in turn {}", printable(posted.message), printable(posted.turn)))
}
