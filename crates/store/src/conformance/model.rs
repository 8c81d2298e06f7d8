//! The conversation store as simple as it can be: maps in memory, no index, a copy of everything for each transaction.

mod change;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use headwater_model::conversation::{Coverage, MessageRecord, Place, Receipt, SessionRecord, TurnRecord};
use headwater_model::{Epoch, Revision, SessionId, TaskId};

use crate::conformance::view::View;
use crate::rules;
use crate::{
    Batch, ContentLimit, ConversationSource, ConversationWriter, Mutation, NewSession, Page, PageLimit,
    PageQuery, ReadError, ReadErrorKind, Sort, WriteError, WriteErrorKind, Written,
};
use change::Change;

/// A conversation store in memory.
#[derive(Debug, Default)]
pub struct Model {
    state: Mutex<State>,
    limit: ContentLimit,
}

/// All rows.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    tasks: BTreeSet<String>,
    sessions: BTreeMap<String, SessionRecord>,
    turns: BTreeMap<String, TurnRecord>,
    messages: BTreeMap<String, MessageRecord>,
    revisions: BTreeMap<String, Revision>,
    prompts: BTreeMap<String, u64>,
    /// Sessions in which the transaction changed a row.
    moved: BTreeSet<String>,
}

impl Model {
    /// An empty store whose messages may have as many bytes as `limit` says.
    pub fn new(limit: ContentLimit) -> Self {
        Self { state: Mutex::default(), limit }
    }

    /// Adds a task.
    pub fn create_task(&self, task: &TaskId) {
        self.with(|state| state.tasks.insert(task.to_string()));
    }

    /// Removes a task with its sessions.
    pub fn delete_task(&self, task: &TaskId) {
        self.with(|state| {
            state.tasks.remove(task.as_str());
            let owned = |session: &&SessionRecord| session.task_id == task.as_str();
            let ids: Vec<String> =
                state.sessions.values().filter(owned).map(|session| session.id.clone()).collect();
            for id in ids {
                state.remove_session(&id);
            }
        });
    }

    /// The batch with the offset of each append set to the length that its message has before the batch.
    pub fn at_end(&self, batch: &Batch) -> Batch {
        let mut batch = batch.clone();
        self.with(|state| {
            for mutation in &mut batch.mutations {
                if let Mutation::AppendContent { message, offset_bytes, .. } = mutation {
                    let length =
                        state.messages.get(message.as_str()).map(|stored| stored.content.len() as u64);
                    *offset_bytes = length.unwrap_or(*offset_bytes);
                }
            }
        });
        batch
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn remove_session(&mut self, id: &str) {
        self.sessions.remove(id);
        self.revisions.remove(id);
        self.turns.retain(|_, turn| turn.session_id != id);
        self.messages.retain(|_, message| message.session_id != id);
    }

    fn revision(&self, id: &str) -> Revision {
        self.revisions.get(id).copied().unwrap_or_default()
    }

    /// The history of a session as people see it.
    pub(super) fn view(&self, id: &str) -> View {
        let messages = self.messages.values().filter(|message| message.session_id == id);
        let turns = self.turns.values().filter(|turn| turn.session_id == id && self.is_visible(turn));
        View::new(messages.cloned(), turns.cloned())
    }

    fn is_visible(&self, turn: &TurnRecord) -> bool {
        let named = |message: &MessageRecord| message.turn_id.as_deref() == Some(&turn.id);
        !rules::is_reserved(&turn.metadata) || self.messages.values().any(named)
    }

    fn ensure_session(&self, id: &SessionId) -> Result<(), WriteError> {
        let known = self.sessions.contains_key(id.as_str());
        if known { Ok(()) } else { Err(WriteErrorKind::UnknownSession.into()) }
    }
}

#[async_trait]
impl ConversationWriter for Model {
    async fn create_session(&self, session: NewSession) -> Result<SessionRecord, WriteError> {
        self.with(|state| {
            if let Some(stored) = state.sessions.get(session.id.as_str()) {
                let same = stored.task_id == session.task.as_str();
                return if same { Ok(stored.clone()) } else { Err(WriteErrorKind::DuplicateSession.into()) };
            }
            if !state.tasks.contains(session.task.as_str()) {
                return Err(WriteErrorKind::UnknownTask.into());
            }
            let at = session.at.cut_to_micros();
            let record = SessionRecord {
                id: session.id.to_string(),
                task_id: session.task.to_string(),
                name: session.name,
                state: "CREATED".to_owned(),
                started_at: at,
                completed_at: None,
                updated_at: at,
            };
            state.sessions.insert(record.id.clone(), record.clone());
            Ok(record)
        })
    }

    async fn delete_session(&self, session: &SessionId) -> Result<(), WriteError> {
        self.with(|state| {
            state.ensure_session(session)?;
            state.remove_session(session.as_str());
            Ok(())
        })
    }

    async fn apply(&self, batch: Batch) -> Result<Written, WriteError> {
        self.with(|state| {
            let mut named = BTreeSet::from([batch.session.clone()]);
            for mutation in &batch.mutations {
                if let Mutation::MoveMessage { to_session, .. } = mutation {
                    named.insert(to_session.clone());
                }
            }
            named.iter().try_for_each(|session| state.ensure_session(session))?;
            state.moved.clear();
            let before = state.clone();
            for (index, mutation) in batch.mutations.iter().enumerate() {
                let session = batch.session.as_str();
                let made = Change { state, session, at: batch.at, limit: self.limit }.make(mutation);
                if let Err(reason) = made {
                    *state = before;
                    return Err(WriteErrorKind::Refused { index, reason }.into());
                }
            }
            let receipts = named.into_iter().map(|session| state.receipt(&before, session)).collect();
            Ok(Written { receipts })
        })
    }
}

impl State {
    /// What became of a session, and the step of its revision where a row of it changed.
    fn receipt(&mut self, before: &Self, session: SessionId) -> Receipt {
        let id = session.as_str();
        let base = self.revision(id);
        let revision = if self.moved.contains(id) { base.after(1).unwrap_or(base) } else { base };
        let operations = before.view(id).operations_to(&self.view(id));
        if revision != base {
            self.revisions.insert(id.to_owned(), revision);
        }
        Receipt { session, base, revision, coverage: Coverage::Complete(operations) }
    }

    fn page<R: Clone>(
        &self,
        query: &PageQuery,
        rows: impl FnOnce(View) -> Vec<(Place, R)>,
    ) -> Result<Page<R>, ReadError> {
        if !self.sessions.contains_key(query.session.as_str()) {
            return Err(ReadErrorKind::UnknownSession.into());
        }
        let revision = self.revision(query.session.as_str());
        if query.expected.is_some_and(|expected| expected != revision) {
            return Err(ReadErrorKind::RevisionMoved { current: revision }.into());
        }
        let mut rows = rows(self.view(query.session.as_str()));
        rows.sort_by(|(one, _), (other, _)| one.order.cmp(&other.order));
        if query.sort == Sort::Desc {
            rows.reverse();
        }
        let behind = |place: &Place| match (&query.after, query.sort) {
            (None, _) => true,
            (Some(after), Sort::Asc) => place.order > *after,
            (Some(after), Sort::Desc) => place.order < *after,
        };
        rows.retain(|(place, _)| query.selection.admits(place) && behind(place));
        let has_more = rows.len() > query.limit.get();
        let records = rows.into_iter().take(query.limit.get()).map(|(_, row)| row).collect();
        Ok(Page { records, revision, has_more })
    }
}

#[async_trait]
impl ConversationSource for Model {
    async fn epoch(&self) -> Result<Epoch, ReadError> {
        Epoch::new("model").map_err(|error| ReadErrorKind::Storage(Box::new(error)).into())
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError> {
        Ok(self.with(|state| state.sessions.get(session.as_str()).cloned()))
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: PageLimit,
    ) -> Result<Vec<SessionRecord>, ReadError> {
        let behind =
            |session: &&SessionRecord| after.is_none_or(|after| session.id.as_str() > after.as_str());
        Ok(self.with(|state| state.sessions.values().filter(behind).take(limit.get()).cloned().collect()))
    }

    async fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
        self.with(|state| state.page(query, View::into_messages))
    }

    async fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
        self.with(|state| state.page(query, View::into_turns))
    }

    async fn revisions(&self, sessions: &[SessionId]) -> Result<Vec<Option<Revision>>, ReadError> {
        let of = |state: &State, id: &str| state.sessions.contains_key(id).then(|| state.revision(id));
        Ok(self.with(|state| sessions.iter().map(|session| of(state, session.as_str())).collect()))
    }
}
