//! Messages.

use headwater_model::conversation::{MessageRecord, Operation, USER};
use headwater_model::{MessageId, SessionId, TurnId};

use crate::apply::batch::Writing;
use crate::apply::{MutationFailure, OrRefuse};
use crate::{BadMutation, MessagePatch, NewMessage, Rows, rules};

impl<R: Rows> Writing<'_, R> {
    pub(super) async fn create_message(&mut self, new: &NewMessage) -> Result<(), MutationFailure<R::Error>> {
        for text in [&new.content, &new.author_id, &new.kind, &new.metadata] {
            rules::ensure_text(text).or_refuse()?;
        }
        rules::ensure_fits(new.content.len() as u64, self.limit).or_refuse()?;
        rules::Metadata::parse(&new.metadata).or_refuse()?;
        if let Some(stored) = self.rows.message(new.id.as_str()).await? {
            let repeated = self.is_repeated(&stored, new);
            return if repeated { Ok(()) } else { Err(MutationFailure::Refused(BadMutation::DuplicateId)) };
        }
        let turn = self.turn(&new.turn, self.batch.session.as_str()).await?;
        let (mut created_at, mut prompt_index) =
            (new.created_at.unwrap_or(self.batch.at).cut_to_micros(), None);
        if new.author.stored() == USER {
            let newest = self.rows.newest_prompt(self.batch.session.as_str()).await?;
            created_at = rules::prompt_time(new.created_at, self.batch.at, newest).or_refuse()?;
            prompt_index = Some(self.rows.next_prompt_seq(self.batch.session.as_str()).await?);
        }
        let was_visible = self.is_visible(&turn).await?;
        let record = MessageRecord {
            id: new.id.to_string(),
            session_id: self.session().to_owned(),
            task_id: turn.task_id.clone(),
            turn_id: Some(turn.id.clone()),
            author_type: new.author.stored().to_owned(),
            author_id: new.author_id.clone(),
            kind: kind(&new.kind),
            content: new.content.clone(),
            requests_input: new.requests_input,
            metadata: new.metadata.clone(),
            created_at,
            updated_at: created_at,
            prompt_index,
            order_time: Some(created_at.order_time()),
        };
        let record = self.rows.insert_message(&record).await?;
        self.recorder.steps(&record.session_id, 1);
        self.recorder.message(record, None);
        if !was_visible {
            self.recorder.turn(turn, None);
        }
        Ok(())
    }

    /// Whether `new` asks once more for what is there: text may have been added since.
    fn is_repeated(&self, stored: &MessageRecord, new: &NewMessage) -> bool {
        stored.session_id == self.session()
            && stored.turn_id.as_deref() == Some(new.turn.as_str())
            && stored.author_type == new.author.stored()
            && stored.content.starts_with(&new.content)
    }

    pub(super) async fn append(
        &mut self,
        id: &MessageId,
        offset_bytes: u64,
        text: &str,
    ) -> Result<(), MutationFailure<R::Error>> {
        rules::ensure_text(text).or_refuse()?;
        let head = self.rows.message_head(id.as_str(), self.batch.session.as_str()).await?;
        let (actual_bytes, previous) = head.ok_or(MutationFailure::Refused(BadMutation::UnknownMessage))?;
        if actual_bytes != offset_bytes {
            let conflict = BadMutation::AppendConflict { expected_bytes: offset_bytes, actual_bytes };
            return Err(MutationFailure::Refused(conflict));
        }
        rules::ensure_fits(actual_bytes + text.len() as u64, self.limit).or_refuse()?;
        if text.is_empty() {
            return Ok(());
        }
        let record = self.rows.append(id.as_str(), text, self.at()).await?;
        self.recorder.steps(&record.session_id, 1);
        self.recorder.message(record, Some(previous));
        Ok(())
    }

    pub(super) async fn update_message(
        &mut self,
        id: &MessageId,
        patch: &MessagePatch,
    ) -> Result<(), MutationFailure<R::Error>> {
        let stored = self.message(id).await?;
        let mut changed = stored.clone();
        if let Some(content) = &patch.content {
            rules::ensure_text(content).or_refuse()?;
            rules::ensure_fits(content.len() as u64, self.limit).or_refuse()?;
            changed.content.clone_from(content);
        }
        if let Some(text) = &patch.kind {
            rules::ensure_text(text).or_refuse()?;
            changed.kind = kind(text);
        }
        if let Some(requests_input) = patch.requests_input {
            changed.requests_input = requests_input;
        }
        if let Some(change) = &patch.metadata {
            changed.metadata = rules::changed_metadata(&changed.metadata, change).or_refuse()?;
        }
        self.store_message(stored, changed).await
    }

    pub(super) async fn update_tool(
        &mut self,
        id: &MessageId,
        patch: &MessagePatch,
    ) -> Result<(), MutationFailure<R::Error>> {
        let stored = self.message(id).await?;
        if !rules::is_tool(&stored.kind, &rules::Metadata::parse(&stored.metadata).or_refuse()?) {
            return Err(MutationFailure::Refused(BadMutation::NotATool));
        }
        self.update_message(id, patch).await
    }

    pub(super) async fn resolve(
        &mut self,
        id: &MessageId,
        status: &str,
    ) -> Result<(), MutationFailure<R::Error>> {
        rules::ensure_text(status).or_refuse()?;
        let stored = self.message(id).await?;
        let metadata = rules::resolved_request(&stored.kind, &stored.metadata, status).or_refuse()?;
        let changed = MessageRecord { metadata, ..stored.clone() };
        self.store_message(stored, changed).await
    }

    pub(super) async fn move_message(
        &mut self,
        id: &MessageId,
        to_session: &SessionId,
        to_turn: &TurnId,
    ) -> Result<(), MutationFailure<R::Error>> {
        let stored = self.message(id).await?;
        let target = self.turn(to_turn, to_session.as_str()).await?;
        let changed = MessageRecord {
            session_id: target.session_id,
            turn_id: Some(target.id),
            task_id: target.task_id,
            ..stored.clone()
        };
        self.store_message(stored, changed).await
    }

    pub(super) async fn delete_message(&mut self, id: &MessageId) -> Result<(), MutationFailure<R::Error>> {
        let stored = self.message(id).await?;
        let left = self.turn_of(&stored).await?;
        self.rows.delete_message(id.as_str()).await?;
        self.recorder.steps(&stored.session_id, 1);
        self.recorder.operation(&stored.session_id, Operation::MessageRemove { previous: stored.place() });
        self.record_hidden(left).await
    }

    /// Writes `changed` in the place of `stored`, with the time of the change. A change of nothing is none.
    pub(super) async fn store_message(
        &mut self,
        stored: MessageRecord,
        mut changed: MessageRecord,
    ) -> Result<(), MutationFailure<R::Error>> {
        if stored == changed {
            return Ok(());
        }
        changed.updated_at = self.at();
        let moves = stored.turn_id != changed.turn_id;
        let left = if moves { self.turn_of(&stored).await? } else { None };
        let mut entered = if moves { self.turn_of(&changed).await? } else { None };
        if let Some(turn) = &entered
            && self.is_visible(turn).await?
        {
            entered = None;
        }
        let record = if moves {
            self.rows.move_message(&changed).await?
        } else {
            self.rows.update_message(&stored, &changed).await?
        };
        self.recorder.steps(&stored.session_id, 1);
        if stored.session_id == record.session_id {
            self.recorder.message(record, Some(stored.place()));
        } else {
            self.recorder.steps(&record.session_id, 1);
            self.recorder
                .operation(&stored.session_id, Operation::MessageRemove { previous: stored.place() });
            self.recorder.message(record, None);
        }
        if let Some(turn) = entered {
            self.recorder.turn(turn, None);
        }
        self.record_hidden(left).await
    }

    async fn message(&mut self, id: &MessageId) -> Result<MessageRecord, MutationFailure<R::Error>> {
        let stored = self.rows.message(id.as_str()).await?;
        let of_session = stored.filter(|stored| stored.session_id == self.batch.session.as_str());
        of_session.ok_or(MutationFailure::Refused(BadMutation::UnknownMessage))
    }
}

/// A type as it is shown: an empty one is a plain message.
fn kind(text: &str) -> String {
    if text.is_empty() { rules::PLAIN.to_owned() } else { text.to_owned() }
}
