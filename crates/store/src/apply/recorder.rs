//! What a transaction did, session by session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use headwater_model::conversation::{Coverage, MessageRecord, Operation, Place, Receipt, TurnRecord};
use headwater_model::{Revision, SessionId};

use crate::apply::Failure;
use crate::{Rows, WriteErrorKind};

/// Most operations of one receipt. A client buffers no more (C23), so a longer list would be thrown away there.
const OPERATIONS_MAX: usize = 256;

/// Collects operations, and counts the steps that are known to have raised a revision.
#[derive(Debug)]
pub(super) struct Recorder {
    sessions: BTreeMap<SessionId, Recorded>,
}

#[derive(Debug)]
struct Recorded {
    base: Revision,
    steps: u32,
    operations: Vec<Operation>,
}

impl Recorder {
    /// Reads where `sessions` are before anything changes, in the order of their ids: so no two transactions wait for each other's lock.
    pub(super) async fn begin<R: Rows>(
        rows: &mut R,
        sessions: BTreeSet<SessionId>,
    ) -> Result<Self, Failure<R::Error>> {
        let mut recorder = Self { sessions: BTreeMap::new() };
        for session in sessions {
            let base =
                rows.revision(&session).await?.ok_or(Failure::Refused(WriteErrorKind::UnknownSession))?;
            recorder.sessions.insert(session, Recorded { base, steps: 0, operations: Vec::new() });
        }
        Ok(recorder)
    }

    /// The revision of `session` was raised by `steps`.
    pub(super) fn steps(&mut self, session: &str, steps: u32) {
        if let Some(recorded) = self.recorded(session) {
            recorded.steps = recorded.steps.saturating_add(steps);
        }
    }

    /// Something happened to the history of `session`.
    pub(super) fn operation(&mut self, session: &str, operation: Operation) {
        if let Some(recorded) = self.recorded(session) {
            // One more than a receipt holds says that there are too many; what comes behind need not be kept, each with its record.
            if recorded.operations.len() <= OPERATIONS_MAX {
                recorded.operations.push(operation);
            }
        }
    }

    /// A message stands in its session as given.
    pub(super) fn message(&mut self, record: MessageRecord, previous: Option<Place>) {
        let session = record.session_id.clone();
        self.operation(&session, Operation::MessageUpsert { record: Arc::new(record), previous });
    }

    /// A turn is visible in its session as given.
    pub(super) fn turn(&mut self, record: TurnRecord, previous: Option<Place>) {
        let session = record.session_id.clone();
        self.operation(&session, Operation::TurnUpsert { record: Arc::new(record), previous });
    }

    fn recorded(&mut self, session: &str) -> Option<&mut Recorded> {
        // Ids inside rows are plain text; those of the batch are few.
        self.sessions.iter_mut().find(|(id, _)| id.as_str() == session).map(|(_, recorded)| recorded)
    }

    /// The receipts. Where the revision moved by another number than is known, something else changed rows too (a trigger of another
    /// program), and the receipt is a reset (C5).
    pub(super) async fn finish<R: Rows>(self, rows: &mut R) -> Result<Vec<Receipt>, Failure<R::Error>> {
        let mut receipts = Vec::with_capacity(self.sessions.len());
        for (session, recorded) in self.sessions {
            let revision =
                rows.revision(&session).await?.ok_or(Failure::Refused(WriteErrorKind::UnknownSession))?;
            let Recorded { base, steps, operations } = recorded;
            let known = base.after(steps) == Some(revision) && operations.len() <= OPERATIONS_MAX;
            let coverage = if known { Coverage::Complete(operations) } else { Coverage::Reset };
            receipts.push(Receipt { session, base, revision, coverage });
        }
        Ok(receipts)
    }
}
