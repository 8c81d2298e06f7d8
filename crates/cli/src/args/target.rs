//! What `preview` and `prune` are about: classes in many sessions, or items of one message.

use clap::{ArgGroup, Args};
use headwater_model::{MessageId, SessionId};
use headwater_upkeep::ReadDatabase;
use headwater_upkeep::plan::Selection;
use headwater_upkeep::show::{self, ShowOptions};

use super::selection::{ClassArgs, ReachArgs, SessionArgs, selection};
use crate::clock;
use crate::failure::Failure;

/// Classes, or one message.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("target").required(true).multiple(true).args(["classes", "message"]))]
pub(crate) struct TargetArgs {
    #[command(flatten)]
    classes: ClassArgs,
    /// Items of this message instead of classes.
    #[arg(long, value_name = "ID", conflicts_with_all = ["classes", "projects", "older_than", "keep_last", "pins", "before_compaction", "newest_turn", "exact", "archived", "broken_trees"])]
    message: Option<MessageId>,
    #[command(flatten)]
    sessions: SessionArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// The same, understood.
pub(crate) enum Target {
    /// Classes.
    Classes(Box<Selection>),
    /// One message of a session, which is looked up where it is not named.
    Message { message: MessageId, session: Option<SessionId> },
}

impl TargetArgs {
    /// What is meant, at this moment.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        let Some(message) = &self.message else {
            let selection = selection(&self.classes.classes, &self.sessions, self.reach, clock::now())?;
            return Ok(Target::Classes(Box::new(selection)));
        };
        let session = match self.sessions.sessions.as_slice() {
            [] => None,
            [session] => Some(session.clone()),
            [_, _, ..] => {
                return Err(Failure::usage(
                    "a message stands in one session; --session is given several times",
                ));
            }
        };
        Ok(Target::Message { message: message.clone(), session })
    }
}

/// The session of a message: as named, else as stored.
pub(crate) fn session_of(
    database: &ReadDatabase,
    message: &MessageId,
    named: Option<SessionId>,
) -> Result<SessionId, Failure> {
    if let Some(session) = named {
        return Ok(session);
    }
    let options = ShowOptions { text_bytes_max: 0, technical: false };
    let found = show::message(database, message.as_str(), options)?;
    SessionId::new(found.session)
        .map_err(|error| Failure::usage(format_args!("the message's session: {error}")))
}
