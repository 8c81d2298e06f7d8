//! What a transaction did, session by session.

use std::collections::BTreeMap;
use std::sync::Arc;

use headwater_model::conversation::{Coverage, MessageRecord, Operation, Place, Receipt, TurnRecord};
use headwater_model::{Revision, SessionId};
use headwater_store::WriteErrorKind;
use rusqlite::Connection;

use crate::failure::Failure;
use crate::pages;

/// Most operations of one receipt. A client buffers no more (C23), so a longer list would be thrown away there.
const OPERATIONS_MAX: usize = 256;

/// Collects operations, and counts the rows whose change raises a revision.
#[derive(Debug)]
pub(super) struct Recorder {
    sessions: BTreeMap<SessionId, Recorded>,
}

#[derive(Debug)]
struct Recorded {
    base: Revision,
    rows: u32,
    operations: Vec<Operation>,
}

impl Recorder {
    /// Reads where `sessions` are before anything changes.
    pub(super) fn begin(
        db: &Connection,
        sessions: impl IntoIterator<Item = SessionId>,
    ) -> Result<Self, Failure> {
        let mut recorder = Self { sessions: BTreeMap::new() };
        for session in sessions {
            let base = pages::revision(db, session.as_str())?.ok_or(WriteErrorKind::UnknownSession)?;
            recorder.sessions.insert(session, Recorded { base, rows: 0, operations: Vec::new() });
        }
        Ok(recorder)
    }

    /// A row of `session` has changed.
    pub(super) fn row(&mut self, session: &str) {
        if let Some(recorded) = self.recorded(session) {
            recorded.rows += 1;
        }
    }

    /// Something happened to the history of `session`.
    pub(super) fn operation(&mut self, session: &str, operation: Operation) {
        if let Some(recorded) = self.recorded(session) {
            recorded.operations.push(operation);
        }
    }

    /// A message stands in `session` as given.
    pub(super) fn message(&mut self, session: &str, record: MessageRecord, previous: Option<Place>) {
        self.operation(session, Operation::MessageUpsert { record: Arc::new(record), previous });
    }

    /// A turn is visible in `session` as given.
    pub(super) fn turn(&mut self, session: &str, record: TurnRecord, previous: Option<Place>) {
        self.operation(session, Operation::TurnUpsert { record: Arc::new(record), previous });
    }

    fn recorded(&mut self, session: &str) -> Option<&mut Recorded> {
        // Ids inside rows are plain text; those of the batch are few.
        self.sessions.iter_mut().find(|(id, _)| id.as_str() == session).map(|(_, recorded)| recorded)
    }

    /// The receipts. Where the revision moved by another number than rows are known to have changed, something else changed rows too (a
    /// trigger of another program), and the receipt is a reset (C5).
    pub(super) fn finish(self, db: &Connection) -> Result<Vec<Receipt>, Failure> {
        let mut receipts = Vec::with_capacity(self.sessions.len());
        for (session, recorded) in self.sessions {
            let revision = pages::revision(db, session.as_str())?.ok_or(WriteErrorKind::UnknownSession)?;
            let Recorded { base, rows, operations } = recorded;
            let known = base.after(rows) == Some(revision) && operations.len() <= OPERATIONS_MAX;
            let coverage = if known { Coverage::Complete(operations) } else { Coverage::Reset };
            receipts.push(Receipt { session, base, revision, coverage });
        }
        Ok(receipts)
    }
}
