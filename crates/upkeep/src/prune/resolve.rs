//! What became of prunes whose process is gone (P6).

use headwater_model::{MessageId, SessionId};
use rusqlite::Connection;

use super::answer::PruneError;
use super::content::Content;
use super::pruner::Pruner;
use crate::schema::Schema;
use crate::state::{Evidence, Intent, Resolution};

impl Pruner<'_> {
    /// Resolves every open intent against the stored rows. Only for the holder of the claim: nobody else is between an intent and its
    /// commit then.
    ///
    /// An intent whose message is gone or cannot be read stays open: there is nothing to tell from, and no request can be about it.
    pub(super) fn resolve_open_intents(&mut self) -> Result<(), PruneError> {
        let intents = self.state.intents(self.key)?;
        if intents.is_empty() {
            return Ok(());
        }
        let snapshot = self.database.connection().unchecked_transaction()?;
        let mut resolutions = Vec::new();
        for intent in &intents {
            if let Some(resolution) = resolution(&snapshot, self.fence.schema(), intent)? {
                resolutions.push((intent.key.as_str(), resolution));
            }
        }
        drop(snapshot);
        // The process that committed what was read may have ended before it was on disk.
        self.locks.make_durable()?;
        self.state.resolve(self.key, resolutions)?;
        Ok(())
    }
}

fn resolution(
    connection: &Connection,
    schema: &Schema,
    intent: &Intent,
) -> rusqlite::Result<Option<Resolution>> {
    let (Ok(session), Ok(message)) =
        (SessionId::new(intent.session.as_str()), MessageId::new(intent.message.as_str()))
    else {
        return Ok(None);
    };
    let Some(storage) = Content::storage(connection, schema, &session, &message)? else { return Ok(None) };
    let content = Content::read(connection, storage, &session, &message)?;
    Ok(content.ok().map(|content| judge(&content, &intent.evidence)))
}

/// The transaction removed all of the items or none. Where the content has neither revision, somebody wrote it since, and whether any
/// of the items is still there decides.
fn judge(content: &Content, evidence: &Evidence) -> Resolution {
    if content.revision == evidence.after {
        Resolution::Done
    } else if content.revision == evidence.before || content.has_any(&evidence.gone) {
        Resolution::Void
    } else {
        Resolution::Done
    }
}
