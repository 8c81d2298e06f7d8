//! What a removal is about: classes and sessions.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use headwater_model::{ProjectId, SessionId, UnixMillis};
use headwater_prune::{Class, UnknownClass};
use headwater_upkeep::plan::{Figures, Selection};
use headwater_upkeep::retention::Age;

use super::age;
use crate::failure::Failure;

/// The classes that go.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClassArgs {
    /// What goes; repeat it for several classes.
    #[arg(long = "class", value_name = "CLASS", value_parser = classes())]
    pub(crate) classes: Vec<Class>,
}

/// The sessions that it goes from. Without any of these: from every session.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which sessions")]
pub(crate) struct SessionArgs {
    /// Only this session; repeat it for several.
    #[arg(long = "session", value_name = "ID")]
    pub(crate) sessions: Vec<SessionId>,
    /// Only sessions of this project; repeat it for several.
    #[arg(long = "project", value_name = "ID")]
    projects: Vec<ProjectId>,
    /// Only sessions whose whole tree was last used longer ago than this: 30d, 6mo, 1y.
    #[arg(long, value_name = "AGE", value_parser = age::parse)]
    older_than: Option<Age>,
    /// Leave the N session trees of each project alone that were used last.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keep_last: Option<u32>,
    /// Leave this session and its tree alone; repeat it for several.
    #[arg(long = "pin", value_name = "ID")]
    pins: Vec<SessionId>,
}

/// How far a removal goes within a session.
#[expect(clippy::struct_excessive_bools, reason = "each is one switch of the command line")]
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "How much of a session")]
pub(crate) struct ReachArgs {
    /// Only what stands before the last compaction: it is never sent to the model again.
    #[arg(long)]
    before_compaction: bool,
    /// Let `technical` take the newest turn too.
    #[arg(long)]
    newest_turn: bool,
    /// Take the other messages of a session whose newest turn was interrupted and is not running.
    #[arg(long)]
    pub(crate) interrupted: bool,
    /// Let `sessions` take archived sessions.
    #[arg(long)]
    archived: bool,
    /// Let `sessions` take sessions whose parent is lost, or whose parents form a loop.
    #[arg(long)]
    broken_trees: bool,
    /// Read payloads to turn upper bounds into exact figures.
    #[arg(long)]
    exact: bool,
}

/// The selection that these arguments describe at `now`.
pub(crate) fn selection(
    classes: &[Class],
    sessions: &SessionArgs,
    reach: ReachArgs,
    now: UnixMillis,
) -> Result<Selection, Failure> {
    let used_before = match sessions.older_than {
        Some(age) => Some(
            age::before(age, now).map_err(|error| Failure::usage(format_args!("--older-than: {error}")))?,
        ),
        None => None,
    };
    Ok(Selection {
        sessions: sessions.sessions.clone(),
        projects: sessions.projects.clone(),
        pins: sessions.pins.clone(),
        used_before,
        keep_last: sessions.keep_last,
        before_compaction: reach.before_compaction,
        newest_turn: reach.newest_turn,
        interrupted: reach.interrupted,
        archived: reach.archived,
        broken_trees: reach.broken_trees,
        figures: if reach.exact { Figures::Exact } else { Figures::Near },
        ..Selection::new(classes.iter().copied().collect(), now)
    })
}

fn classes() -> impl TypedValueParser<Value = Class> {
    PossibleValuesParser::new(Class::ALL.map(Class::name))
        .try_map(|name| name.parse::<Class>().map_err(|UnknownClass| UnknownClass))
}
