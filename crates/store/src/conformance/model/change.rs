//! One mutation, made on rows in memory.

use headwater_model::conversation::{MessageRecord, TurnRecord, USER};
use headwater_model::{MessageId, SessionId, TurnId, WallTime};

use super::State;
use crate::{BadMutation, ContentLimit, MessagePatch, Mutation, NewMessage, NewTurn, TurnPatch, rules};

/// One mutation of one batch.
pub(super) struct Change<'a> {
    pub(super) state: &'a mut State,
    pub(super) session: &'a str,
    pub(super) at: WallTime,
    pub(super) limit: ContentLimit,
}

impl Change<'_> {
    pub(super) fn make(&mut self, mutation: &Mutation) -> Result<(), BadMutation> {
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
