//! The conversation store as simple as it can be: maps in memory, no index, a copy of everything for each transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use headwater_model::conversation::{
    Coverage, MessageRecord, Place, Receipt, SessionRecord, TurnRecord, USER,
};
use headwater_model::{Epoch, MessageId, Revision, SessionId, TaskId, TurnId, WallTime};

use crate::conformance::view::View;
use crate::rules;
use crate::{
    BadMutation, Batch, ContentLimit, ConversationSource, ConversationWriter, MessagePatch, Mutation,
    NewMessage, NewSession, NewTurn, Page, PageLimit, PageQuery, ReadError, ReadErrorKind, Sort, TurnPatch,
    WriteError, WriteErrorKind, Written,
};

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

/// One mutation of one batch.
struct Change<'a> {
    state: &'a mut State,
    session: &'a str,
    at: WallTime,
    limit: ContentLimit,
}

impl Change<'_> {
    fn make(&mut self, mutation: &Mutation) -> Result<(), BadMutation> {
        match mutation {
            Mutation::CreateMessage(new) => self.create_message(new),
            Mutation::AppendContent { message, offset_bytes, text } => {
                self.append(message, *offset_bytes, text)
            }
            Mutation::UpdateMessage { message, patch } => self.update_message(message, patch),
            Mutation::UpdateTool { message, patch } => {
                let stored = self.message(message)?;
                let metadata = rules::Metadata::parse(&stored.metadata)?;
                if !rules::is_tool(&stored.kind, &metadata) {
                    return Err(BadMutation::NotATool);
                }
                self.update_message(message, patch)
            }
            Mutation::Resolve { message, status } => {
                rules::ensure_text(status)?;
                let stored = self.message(message)?;
                let metadata = rules::resolved_request(&stored.kind, &stored.metadata, status)?;
                self.store(MessageRecord { metadata, ..stored });
                Ok(())
            }
            Mutation::MoveMessage { message, to_session, to_turn } => {
                self.move_message(message, to_session, to_turn)
            }
            Mutation::DeleteMessage { message } => {
                let stored = self.message(message)?;
                self.state.messages.remove(&stored.id);
                self.moved();
                Ok(())
            }
            Mutation::CreateTurn(new) => self.create_turn(new),
            Mutation::CompleteTurn { turn, completed_at } => self.complete_turn(turn, *completed_at),
            Mutation::UpdateTurn { turn, patch } => self.update_turn(turn, patch),
            Mutation::DeleteTurn { turn } => {
                let stored = self.turn(turn, self.session)?;
                self.state.turns.remove(&stored.id);
                self.state
                    .messages
                    .retain(|_, message| message.turn_id.as_deref() != Some(stored.id.as_str()));
                self.moved();
                Ok(())
            }
        }
    }

    fn moved(&mut self) {
        self.state.moved.insert(self.session.to_owned());
    }

    fn message(&self, id: &MessageId) -> Result<MessageRecord, BadMutation> {
        let stored = self.state.messages.get(id.as_str()).filter(|stored| stored.session_id == self.session);
        stored.cloned().ok_or(BadMutation::UnknownMessage)
    }

    fn turn(&self, id: &TurnId, session: &str) -> Result<TurnRecord, BadMutation> {
        let stored = self.state.turns.get(id.as_str()).filter(|stored| stored.session_id == session);
        stored.cloned().ok_or(BadMutation::UnknownTurn)
    }

    /// Stores a message that changed; one that did not keeps its time too.
    fn store(&mut self, mut changed: MessageRecord) {
        if self.state.messages.get(&changed.id) != Some(&changed) {
            changed.updated_at = self.at.cut_to_micros();
            self.moved();
            self.state.moved.insert(changed.session_id.clone());
            self.state.messages.insert(changed.id.clone(), changed);
        }
    }

    fn store_turn(&mut self, mut changed: TurnRecord) {
        if self.state.turns.get(&changed.id) != Some(&changed) {
            changed.updated_at = self.at.cut_to_micros();
            self.moved();
            self.state.turns.insert(changed.id.clone(), changed);
        }
    }

    fn create_message(&mut self, new: &NewMessage) -> Result<(), BadMutation> {
        for text in [&new.content, &new.author_id, &new.kind, &new.metadata] {
            rules::ensure_text(text)?;
        }
        rules::ensure_fits(new.content.len() as u64, self.limit)?;
        rules::Metadata::parse(&new.metadata)?;
        if let Some(stored) = self.state.messages.get(new.id.as_str()) {
            let same = stored.session_id == self.session
                && stored.turn_id.as_deref() == Some(new.turn.as_str())
                && stored.author_type == new.author.stored()
                && stored.content.starts_with(&new.content);
            return if same { Ok(()) } else { Err(BadMutation::DuplicateId) };
        }
        let turn = self.turn(&new.turn, self.session)?;
        let is_prompt = new.author.stored() == USER;
        let created_at = if is_prompt {
            rules::prompt_time(new.created_at, self.at, self.newest_prompt())?
        } else {
            new.created_at.unwrap_or(self.at).cut_to_micros()
        };
        let prompt_index = is_prompt.then(|| {
            let last = self.state.prompts.entry(self.session.to_owned()).or_default();
            *last += 1;
            *last
        });
        let record = MessageRecord {
            id: new.id.to_string(),
            session_id: self.session.to_owned(),
            task_id: turn.task_id,
            turn_id: Some(turn.id),
            author_type: new.author.stored().to_owned(),
            author_id: new.author_id.clone(),
            kind: if new.kind.is_empty() { rules::PLAIN.to_owned() } else { new.kind.clone() },
            content: new.content.clone(),
            requests_input: new.requests_input,
            metadata: new.metadata.clone(),
            created_at,
            updated_at: created_at,
            prompt_index,
            order_time: Some(created_at.order_time()),
        };
        self.state.messages.insert(record.id.clone(), record);
        self.moved();
        Ok(())
    }

    fn newest_prompt(&self) -> Option<WallTime> {
        let prompts = self.state.messages.values();
        let mine =
            |message: &&MessageRecord| message.session_id == self.session && message.author_type == USER;
        prompts.filter(mine).map(|message| message.created_at).max()
    }

    fn append(&mut self, id: &MessageId, offset_bytes: u64, text: &str) -> Result<(), BadMutation> {
        rules::ensure_text(text)?;
        let mut stored = self.message(id)?;
        let actual_bytes = stored.content.len() as u64;
        if actual_bytes != offset_bytes {
            return Err(BadMutation::AppendConflict { expected_bytes: offset_bytes, actual_bytes });
        }
        rules::ensure_fits(actual_bytes + text.len() as u64, self.limit)?;
        stored.content.push_str(text);
        self.store(stored);
        Ok(())
    }

    fn update_message(&mut self, id: &MessageId, patch: &MessagePatch) -> Result<(), BadMutation> {
        let mut changed = self.message(id)?;
        if let Some(content) = &patch.content {
            rules::ensure_text(content)?;
            rules::ensure_fits(content.len() as u64, self.limit)?;
            changed.content.clone_from(content);
        }
        if let Some(kind) = &patch.kind {
            rules::ensure_text(kind)?;
            changed.kind = if kind.is_empty() { rules::PLAIN.to_owned() } else { kind.clone() };
        }
        if let Some(requests_input) = patch.requests_input {
            changed.requests_input = requests_input;
        }
        if let Some(change) = &patch.metadata {
            changed.metadata = rules::changed_metadata(&changed.metadata, change)?;
        }
        self.store(changed);
        Ok(())
    }

    fn move_message(
        &mut self,
        id: &MessageId,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<(), BadMutation> {
        let stored = self.message(id)?;
        let turn = self.turn(turn, session.as_str())?;
        self.store(MessageRecord {
            session_id: session.to_string(),
            turn_id: Some(turn.id),
            task_id: turn.task_id,
            ..stored
        });
        Ok(())
    }

    fn create_turn(&mut self, new: &NewTurn) -> Result<(), BadMutation> {
        rules::ensure_text(&new.execution_profile_id)?;
        rules::ensure_text(&new.metadata)?;
        rules::Metadata::parse(&new.metadata)?;
        if let Some(stored) = self.state.turns.get(new.id.as_str()) {
            let same = stored.session_id == self.session;
            return if same { Ok(()) } else { Err(BadMutation::DuplicateId) };
        }
        let started_at = new.started_at.unwrap_or(self.at).cut_to_micros();
        let task_id = self.state.sessions.get(self.session).map(|session| session.task_id.clone());
        let record = TurnRecord {
            id: new.id.to_string(),
            session_id: self.session.to_owned(),
            task_id,
            execution_profile_id: new.execution_profile_id.clone(),
            route_generation: new.route_generation,
            metadata: new.metadata.clone(),
            started_at,
            completed_at: None,
            created_at: self.at.cut_to_micros(),
            updated_at: self.at.cut_to_micros(),
            order_time: Some(started_at.order_time()),
        };
        self.state.turns.insert(record.id.clone(), record);
        self.moved();
        Ok(())
    }

    fn complete_turn(&mut self, id: &TurnId, completed_at: Option<WallTime>) -> Result<(), BadMutation> {
        let stored = self.turn(id, self.session)?;
        if stored.completed_at.is_some() {
            return Ok(());
        }
        let completed_at = Some(completed_at.unwrap_or(self.at).cut_to_micros());
        let messages = self.state.messages.values();
        let of_turn: Vec<MessageRecord> =
            messages.filter(|message| message.turn_id.as_ref() == Some(&stored.id)).cloned().collect();
        self.store_turn(TurnRecord { completed_at, ..stored });
        for message in of_turn {
            if let Some(metadata) = rules::completed_tool(&message.kind, &message.metadata) {
                self.store(MessageRecord { metadata, ..message });
            }
        }
        Ok(())
    }

    fn update_turn(&mut self, id: &TurnId, patch: &TurnPatch) -> Result<(), BadMutation> {
        let mut changed = self.turn(id, self.session)?;
        if let Some(profile) = &patch.execution_profile_id {
            rules::ensure_text(profile)?;
            changed.execution_profile_id.clone_from(profile);
        }
        if let Some(generation) = patch.route_generation {
            changed.route_generation = generation;
        }
        if let Some(change) = &patch.metadata {
            changed.metadata = rules::changed_metadata(&changed.metadata, change)?;
        }
        self.store_turn(changed);
        Ok(())
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
