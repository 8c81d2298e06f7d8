//! Before the lock: read a message, judge it, look for its receipt, archive what goes.

use headwater_model::{ContentRevision, MessageId, SessionId};
use headwater_prune::{Class, Indexes, KeptReason, PruneReceipt, PruneRequest, RequestKey, request_key};
use rusqlite::Connection;

use super::answer::{Answer, Blocked, PruneError, PruneErrorKind, Why};
use super::content::{Content, Edit, Writes};
use super::pruner::Pruner;
use super::receipts::{self, ReceiptHome};
use super::step::Step;
use crate::fence::{SessionPlace, Storage};
use crate::plan::RowIds;
use crate::state::{Evidence, Intent, hex};
use crate::undo::{MessageGuard, Unit};

/// What is wanted of one message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'w> {
    /// What a caller selected from a preview.
    Request { request: &'w PruneRequest, place: Option<&'w SessionPlace> },
    /// What a plan holds of it.
    Planned(&'w Planned<'w>),
}

/// What a plan holds of one message.
#[derive(Debug)]
pub(super) struct Planned<'w> {
    pub(super) place: &'w SessionPlace,
    pub(super) message: MessageId,
    /// Rowids of its parts that the plan drops (1.x).
    pub(super) parts: RowIds,
    /// The instant of the plan: a part that was written after it is not what was planned.
    pub(super) as_of: i64,
}

impl Wanted<'_> {
    pub(super) fn session(&self) -> &SessionId {
        match self {
            Self::Request { request, .. } => &request.session,
            Self::Planned(planned) => &planned.place.session,
        }
    }

    pub(super) fn message(&self) -> &MessageId {
        match self {
            Self::Request { request, .. } => &request.message,
            Self::Planned(planned) => &planned.message,
        }
    }
}

/// Parts of a planned message that stay because they are not what was planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) changed: u64,
    pub(super) gone: u64,
}

/// A message that is ready for the lock. Holds no content.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) place: SessionPlace,
    pub(super) request: PruneRequest,
    pub(super) receipt: PruneReceipt,
    pub(super) home: ReceiptHome,
    pub(super) evidence: Evidence,
    pub(super) skipped: Skipped,
}

/// What preparing a message came to.
#[derive(Debug)]
pub(super) enum Preparation {
    Ready(Box<Prepared>),
    Answered { answer: Answer, skipped: Skipped },
}

impl Preparation {
    fn blocked(blocked: impl Into<Blocked>, skipped: Skipped) -> Self {
        Self::Answered { answer: Answer::Blocked(blocked.into()), skipped }
    }
}

impl Prepared {
    pub(super) fn intent(&self) -> Result<Intent, PruneErrorKind> {
        Ok(Intent {
            key: self.receipt.key.to_string(),
            session: self.request.session.as_str().to_owned(),
            message: self.request.message.as_str().to_owned(),
            evidence: self.evidence.clone(),
            receipt: receipts::to_json(&self.receipt)?,
            intended: self.receipt.time,
        })
    }
}

impl Pruner<'_> {
    /// Whether a message keeps its receipts in the state file; `false` also where there is no such message.
    pub(super) fn needs_state(&self, wanted: &Wanted<'_>) -> Result<bool, PruneErrorKind> {
        let schema = self.fence.schema();
        let storage =
            Content::storage(self.database.connection(), schema, wanted.session(), wanted.message())?;
        Ok(storage.is_some_and(|storage| ReceiptHome::of(schema, storage) == ReceiptHome::State))
    }

    pub(super) fn prepare(&mut self, wanted: &Wanted<'_>) -> Result<Preparation, PruneError> {
        let database = self.database;
        // One snapshot for everything that is read; nothing is written in it.
        let snapshot = database.connection().unchecked_transaction()?;
        let preparation = self.prepare_in(&snapshot, wanted)?;
        self.observer.reached(Step::Prepared.name());
        Ok(preparation)
    }

    fn prepare_in(&mut self, snapshot: &Connection, wanted: &Wanted<'_>) -> Result<Preparation, PruneError> {
        let schema = self.fence.schema();
        let (session, message) = (wanted.session(), wanted.message());
        let none = Skipped::default();
        let gone = || Ok(Preparation::blocked(KeptReason::Gone, none));
        let Some(storage) = Content::storage(snapshot, schema, session, message)? else { return gone() };
        let Some(place) = SessionPlace::find(snapshot, schema, storage, session)? else { return gone() };
        let home = ReceiptHome::of(schema, storage);
        let content = Content::read(snapshot, storage, session, message)?;
        // A request that was done before is answered whatever has become of the message since.
        if let Wanted::Request { request, .. } = wanted
            && let Some(receipt) = self.earlier_receipt(snapshot, home, request_key(request))?
            && content.as_ref().map_or(true, |content| content.revision != request.revision)
        {
            return Ok(Preparation::Answered { answer: Answer::Pruned(receipt), skipped: none });
        }
        let content = match content {
            Ok(content) => content,
            Err(reason) => return Ok(Preparation::blocked(reason, none)),
        };
        if expected_place(wanted).is_some_and(|expected| *expected != place) {
            return Ok(Preparation::blocked(Why::Moved, none));
        }
        let (request, skipped) = match select(wanted, &content) {
            Ok(selected) => selected,
            Err((blocked, skipped)) => return Ok(Preparation::blocked(blocked, skipped)),
        };
        let edit = match content.without(request.indexes.as_slice()) {
            Ok(edit) => edit,
            Err(reason) => return Ok(Preparation::blocked(reason, skipped)),
        };
        let receipt = self.receipt(&request, &content, &edit);
        self.archive_edit(snapshot, &place, &request, &edit, receipt.key)?;
        let evidence = Evidence { before: content.revision, after: edit.after, gone: edit.gone };
        Ok(Preparation::Ready(Box::new(Prepared { place, request, receipt, home, evidence, skipped })))
    }

    /// The receipt of an earlier prune by the same request.
    pub(super) fn earlier_receipt(
        &self,
        connection: &Connection,
        home: ReceiptHome,
        key: RequestKey,
    ) -> Result<Option<PruneReceipt>, PruneError> {
        match home {
            ReceiptHome::Kv => Ok(receipts::find(connection, key)?),
            ReceiptHome::State => {
                let stored = self.state.receipt(self.key, &key.to_string())?;
                Ok(stored.map(|stored| receipts::parse(&stored.receipt)).transpose()?)
            }
        }
    }

    fn receipt(&self, request: &PruneRequest, content: &Content, edit: &Edit<'_>) -> PruneReceipt {
        PruneReceipt {
            key: request_key(request),
            session: request.session.clone(),
            message: request.message.clone(),
            before: content.revision,
            after: edit.after,
            removed: edit.removed,
            bytes: edit.bytes,
            layout: content.layout(),
            time: self.fence.clock().now(),
        }
    }

    /// Puts what goes into the archive, on disk before anything is removed. If the removal is refused afterwards, an undo finds the
    /// rows in their place and leaves them.
    fn archive_edit(
        &mut self,
        snapshot: &Connection,
        place: &SessionPlace,
        request: &PruneRequest,
        edit: &Edit<'_>,
        key: RequestKey,
    ) -> Result<(), PruneError> {
        let Some(archive) = self.archive.as_deref_mut() else { return Ok(()) };
        let unit = Unit {
            class: Class::Technical,
            place: place.clone(),
            message: Some(MessageGuard { id: request.message.as_str().to_owned(), after: hex(&edit.guard) }),
            receipt: Some(key.to_string()),
        };
        archive.append(&unit, |frame| {
            match &edit.writes {
                Writes::DeleteParts(parts) => {
                    for part in parts {
                        frame.deleted(snapshot, "part", part.rowid)?;
                    }
                }
                Writes::ReplaceRow { row, data } => {
                    frame.rewritten(snapshot, "session_message", row.rowid, data)?;
                }
            }
            Ok(())
        })?;
        self.observer.reached(Step::Archived.name());
        Ok(())
    }
}

fn expected_place<'w>(wanted: &Wanted<'w>) -> Option<&'w SessionPlace> {
    match wanted {
        Wanted::Request { place, .. } => *place,
        Wanted::Planned(planned) => Some(planned.place),
    }
}

/// The request for what is wanted of the content as it is stored.
fn select(wanted: &Wanted<'_>, content: &Content) -> Result<(PruneRequest, Skipped), (Blocked, Skipped)> {
    let none = Skipped::default();
    let removable = content.removable();
    match wanted {
        Wanted::Request { request, .. } => {
            // A stale request is a conflict whatever the message has become, also where nothing may be removed from it any more.
            if content.revision != request.revision {
                return Err((KeptReason::Changed.into(), none));
            }
            let removable = removable.map_err(|reason| (reason.into(), none))?;
            let is_allowed = |index: &u32| removable.binary_search(index).is_ok();
            if request.indexes.as_slice().iter().all(is_allowed) {
                Ok(((*request).clone(), none))
            } else {
                Err((Why::NoSuchItem.into(), none))
            }
        }
        Wanted::Planned(planned) => {
            let removable = removable.map_err(|reason| (reason.into(), none))?;
            let (indexes, skipped) = planned_indexes(planned, content, removable);
            match Indexes::new(indexes) {
                Ok(indexes) => Ok((request_for(planned, indexes, content.revision), skipped)),
                Err(_) if skipped.changed > 0 => Err((KeptReason::Changed.into(), skipped)),
                Err(_) => Err((KeptReason::Gone.into(), skipped)),
            }
        }
    }
}

fn request_for(planned: &Planned<'_>, indexes: Indexes, revision: ContentRevision) -> PruneRequest {
    PruneRequest {
        session: planned.place.session.clone(),
        message: planned.message.clone(),
        indexes,
        revision,
    }
}

/// 2.x: the row is the unit, and everything removable in it goes. 1.x: each part is a row of its own, and those go that the plan
/// names, that are still there, and that nobody has written since.
fn planned_indexes(planned: &Planned<'_>, content: &Content, removable: Vec<u32>) -> (Vec<u32>, Skipped) {
    if content.storage != Storage::V1 {
        return (removable, Skipped::default());
    }
    let (mut indexes, mut found, mut changed) = (Vec::new(), 0, 0);
    for (part, index) in content.parts().iter().zip(0..) {
        if !planned.parts.contains(part.rowid.cast_unsigned()) {
            continue;
        }
        found += 1;
        if part.time_updated > planned.as_of || removable.binary_search(&index).is_err() {
            changed += 1;
        } else {
            indexes.push(index);
        }
    }
    (indexes, Skipped { changed, gone: planned.parts.len().saturating_sub(found) })
}
