//! `headwater preview`: what a prune would do, read without a trace.

use headwater_model::{MessageId, SessionId};
use headwater_upkeep::prune::{MessagePreview, preview_message};
use headwater_upkeep::{ReadDatabase, plan};

use crate::app::App;
use crate::args::target::{Target, TargetArgs, session_of};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::plan::{self as plan_view, PlanView};
use crate::render::size::size;
use crate::render::table::{Column, Table};
use crate::render::text::printable;
use crate::status::Status;

/// Show what a prune would remove, and change nothing.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  headwater preview --class superseded-events --class diffs
  headwater preview --class technical --older-than 30d
  headwater preview --message msg_1234")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let target = args.target.target()?;
    let database = ReadDatabase::open(&app.database()?)?;
    match target {
        Target::Classes(selection) => {
            let watch = Watch::new(app.cancel.clone());
            let planned = plan::compute(database.connection(), database.schema(), &selection, &watch);
            watch.end();
            database.finish()?;
            let plan = planned?;
            let status = if plan_view::is_empty(&plan) { Status::Nothing } else { Status::Done };
            if app.out.is_json() {
                app.out.result(status, &PlanView::from(&plan))?;
            } else {
                plan_view::show(&plan, &mut app.out)?;
            }
            Ok(status)
        }
        Target::Message { message, session } => {
            let session = session_of(&database, &message, session)?;
            let preview = of_message(&database, &session, &message)?;
            database.finish()?;
            let status =
                if preview.items.iter().any(|item| item.removable) { Status::Done } else { Status::Nothing };
            if app.out.is_json() {
                app.out.result(status, &preview)?;
            } else {
                show(&preview, &mut app.out)?;
                suggest(&preview, &mut app.out)?;
            }
            Ok(status)
        }
    }
}

/// The preview of one message, or why there is none.
pub(crate) fn of_message(
    database: &ReadDatabase,
    session: &SessionId,
    message: &MessageId,
) -> Result<MessagePreview, Failure> {
    let preview = preview_message(database.connection(), database.schema(), session, message)?;
    preview.map_err(Failure::from)
}

/// Shows the items of a message and which of them may go.
pub(crate) fn show(preview: &MessagePreview, out: &mut Output) -> Result<(), Failure> {
    out.line(format_args!(
        "message {} of {}",
        printable(preview.message.as_str()),
        printable(preview.place.session.as_str())
    ))?;
    out.line(format_args!("revision {}", preview.revision))?;
    if let Some(blocked) = preview.blocked {
        out.line(format_args!("nothing of it may go: {}", blocked.why))?;
    }
    let mut table = Table::new([
        Column::Figure("Index"),
        Column::Text("Kind"),
        Column::Text("Tool"),
        Column::Figure("Size"),
        Column::Whole("May go"),
    ]);
    for item in &preview.items {
        table.row([
            item.index.to_string(),
            printable(&item.kind).into_owned(),
            printable(item.tool.as_deref().unwrap_or_default()).into_owned(),
            size(item.bytes),
            if item.removable { "yes" } else { "no" }.to_owned(),
        ]);
    }
    out.table(&mut table)
}

/// Says how to remove what may go.
fn suggest(preview: &MessagePreview, out: &mut Output) -> Result<(), Failure> {
    let removable: Vec<_> = preview.items.iter().filter(|item| item.removable).collect();
    if removable.is_empty() {
        return Ok(());
    }
    let indexes: Vec<_> = removable.iter().take(20).map(|item| format!(" --index {}", item.index)).collect();
    let indexes = indexes.concat();
    let (message, revision) = (printable(preview.message.as_str()), preview.revision);
    out.line("")?;
    out.line(format_args!("headwater prune --message {message} --revision {revision}{indexes}"))
}
