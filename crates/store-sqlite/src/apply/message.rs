//! Messages.

use headwater_model::conversation::{MessageRecord, Operation, USER};
use headwater_model::{MessageId, SessionId, TurnId, WallTime};
use headwater_store::{BadMutation, MessagePatch, NewMessage, rules};

use crate::apply::batch::Writing;
use crate::failure::MutationFailure;
use crate::order::order_time;
use crate::rows;

impl Writing<'_> {
    pub(super) fn create_message(&mut self, new: &NewMessage) -> Result<(), MutationFailure> {
        for text in [&new.content, &new.author_id, &new.kind, &new.metadata] {
            rules::ensure_text(text)?;
        }
        rules::ensure_fits(new.content.len() as u64, self.limit)?;
        rules::Metadata::parse(&new.metadata)?;
        if let Some(stored) = self.find_message(new.id.as_str())? {
            return if self.is_repeated(&stored, new) {
                Ok(())
            } else {
                Err(BadMutation::DuplicateId.into())
            };
        }
        let turn = self.turn(&new.turn, self.session())?;
        let is_prompt = new.author.stored() == USER;
        let created_at = if is_prompt {
            rules::prompt_time(new.created_at, self.batch.at, self.newest_prompt()?)?
        } else {
            new.created_at.unwrap_or(self.batch.at).cut_to_micros()
        };
        let prompt_seq = if is_prompt { self.next_prompt_seq()? } else { 0 };
        let was_visible = self.is_visible(&turn)?;
        let kind = if new.kind.is_empty() { rules::PLAIN } else { &new.kind };
        let task_id = turn.task_id.clone().unwrap_or_default();
        let sql = format!(
            "INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, author_id, type, content,
                 requests_input, metadata, created_at, updated_at, prompt_seq)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12) RETURNING {}",
            rows::message_columns()
        );
        let values = rusqlite::params![
            new.id.as_str(),
            self.session(),
            task_id,
            turn.id,
            new.author.stored(),
            new.author_id,
            kind,
            new.content,
            new.requests_input,
            new.metadata,
            created_at.stored_text(),
            prompt_seq,
        ];
        let record = self.db.prepare_cached(&sql)?.query_row(values, rows::message)?;
        let session = record.session_id.clone();
        self.recorder.row(&session);
        self.recorder.message(&session, record, None);
        if !was_visible {
            self.recorder.turn(&session, turn, None);
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

    fn newest_prompt(&self) -> rusqlite::Result<Option<WallTime>> {
        let time = order_time("created_at");
        let sql = format!(
            "SELECT {time} FROM task_session_messages WHERE task_session_id = ?1 AND author_type = 'user'
             ORDER BY {time} DESC, id DESC LIMIT 1"
        );
        let newest: Option<Option<String>> = self
            .db
            .prepare_cached(&sql)?
            .query_map([self.session()], |row| row.get(0))?
            .next()
            .transpose()?;
        Ok(newest.flatten().and_then(|text| WallTime::parse_stored(&text).ok()))
    }

    /// The number of the next prompt: never one that was used before, whatever has been deleted since (C6).
    fn next_prompt_seq(&self) -> rusqlite::Result<i64> {
        let sql = "INSERT INTO task_session_prompt_seq (task_session_id, last_seq)
                   SELECT ?1, 1 + ifnull(max(prompt_seq), 0) FROM task_session_messages
                       WHERE task_session_id = ?1 AND author_type = 'user'
                           AND NOT EXISTS (SELECT 1 FROM task_session_prompt_seq WHERE task_session_id = ?1)
                   ON CONFLICT (task_session_id) DO UPDATE SET last_seq = last_seq + 1
                   RETURNING last_seq";
        self.db.prepare_cached(sql)?.query_row([self.session()], |row| row.get(0))
    }

    pub(super) fn append(
        &mut self,
        id: &MessageId,
        offset_bytes: u64,
        text: &str,
    ) -> Result<(), MutationFailure> {
        rules::ensure_text(text)?;
        let place_sql = format!(
            "SELECT octet_length(content), task_id, author_type, {} FROM task_session_messages
             WHERE id = ?1 AND task_session_id = ?2",
            order_time("created_at")
        );
        let head = self.db.prepare_cached(&place_sql)?.query_row([id.as_str(), self.session()], |row| {
            Ok((row.get::<_, Option<i64>>(0)?.unwrap_or(0).unsigned_abs(), rows::place(row, id.as_str(), 1)?))
        });
        let (actual_bytes, previous) = match head {
            Err(rusqlite::Error::QueryReturnedNoRows) => return Err(BadMutation::UnknownMessage.into()),
            head => head?,
        };
        if actual_bytes != offset_bytes {
            return Err(BadMutation::AppendConflict { expected_bytes: offset_bytes, actual_bytes }.into());
        }
        rules::ensure_fits(actual_bytes + text.len() as u64, self.limit)?;
        if text.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "UPDATE task_session_messages SET content = content || ?1, updated_at = ?2 WHERE id = ?3 RETURNING {}",
            rows::message_columns()
        );
        let record =
            self.db.prepare_cached(&sql)?.query_row((text, self.at(), id.as_str()), rows::message)?;
        let session = record.session_id.clone();
        self.recorder.row(&session);
        self.recorder.message(&session, record, Some(previous));
        Ok(())
    }

    pub(super) fn update_message(
        &mut self,
        id: &MessageId,
        patch: &MessagePatch,
    ) -> Result<(), MutationFailure> {
        let stored = self.message(id)?;
        let mut changed = stored.clone();
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
        self.store_message(&stored, &changed)
    }

    pub(super) fn update_tool(
        &mut self,
        id: &MessageId,
        patch: &MessagePatch,
    ) -> Result<(), MutationFailure> {
        let stored = self.message(id)?;
        if !rules::is_tool(&stored.kind, &rules::Metadata::parse(&stored.metadata)?) {
            return Err(BadMutation::NotATool.into());
        }
        self.update_message(id, patch)
    }

    pub(super) fn resolve(&mut self, id: &MessageId, status: &str) -> Result<(), MutationFailure> {
        rules::ensure_text(status)?;
        let stored = self.message(id)?;
        let metadata = rules::resolved_request(&stored.kind, &stored.metadata, status)?;
        let changed = MessageRecord { metadata, ..stored.clone() };
        self.store_message(&stored, &changed)
    }

    pub(super) fn move_message(
        &mut self,
        id: &MessageId,
        to_session: &SessionId,
        to_turn: &TurnId,
    ) -> Result<(), MutationFailure> {
        let stored = self.message(id)?;
        let target = self.turn(to_turn, to_session.as_str())?;
        let changed = MessageRecord {
            session_id: target.session_id.clone(),
            turn_id: Some(target.id.clone()),
            task_id: target.task_id.clone(),
            ..stored.clone()
        };
        self.store_message(&stored, &changed)
    }

    pub(super) fn delete_message(&mut self, id: &MessageId) -> Result<(), MutationFailure> {
        let stored = self.message(id)?;
        let left = self.turn_of(&stored)?;
        self.db.prepare_cached("DELETE FROM task_session_messages WHERE id = ?1")?.execute([id.as_str()])?;
        self.recorder.row(&stored.session_id);
        self.recorder.operation(&stored.session_id, Operation::MessageRemove { previous: stored.place() });
        self.record_hidden(left)
    }

    /// Writes what `changed` has other than `stored`; the time of the change is written with it. A change of nothing is none.
    pub(super) fn store_message(
        &mut self,
        stored: &MessageRecord,
        changed: &MessageRecord,
    ) -> Result<(), MutationFailure> {
        if stored == changed {
            return Ok(());
        }
        let moves = stored.turn_id != changed.turn_id;
        let left = if moves { self.turn_of(stored)? } else { None };
        let target = if moves { self.turn_of(changed)? } else { None };
        let entered = match target {
            Some(turn) if !self.is_visible(&turn)? => Some(turn),
            _ => None,
        };
        let sql = format!(
            "UPDATE task_session_messages SET task_session_id = ?2, task_id = ?3, turn_id = ?4, type = ?5, content = ?6,
                 requests_input = ?7, metadata = ?8, updated_at = ?9
             WHERE id = ?1 RETURNING {}",
            rows::message_columns()
        );
        let values = rusqlite::params![
            changed.id,
            changed.session_id,
            changed.task_id.as_deref().unwrap_or_default(),
            changed.turn_id.as_deref().unwrap_or_default(),
            changed.kind,
            changed.content,
            changed.requests_input,
            changed.metadata,
            self.at(),
        ];
        let record = self.db.prepare_cached(&sql)?.query_row(values, rows::message)?;
        self.recorder.row(&stored.session_id);
        if stored.session_id == changed.session_id {
            self.recorder.message(&stored.session_id, record, Some(stored.place()));
        } else {
            self.recorder.row(&changed.session_id);
            self.recorder
                .operation(&stored.session_id, Operation::MessageRemove { previous: stored.place() });
            self.recorder.message(&changed.session_id, record, None);
        }
        if let Some(turn) = entered {
            self.recorder.turn(&turn.session_id.clone(), turn, None);
        }
        self.record_hidden(left)
    }

    fn message(&self, id: &MessageId) -> Result<MessageRecord, MutationFailure> {
        let stored = self.find_message(id.as_str())?;
        Ok(stored.filter(|stored| stored.session_id == self.session()).ok_or(BadMutation::UnknownMessage)?)
    }

    fn find_message(&self, id: &str) -> rusqlite::Result<Option<MessageRecord>> {
        let sql = format!("SELECT {} FROM task_session_messages WHERE id = ?1", rows::message_columns());
        self.db.prepare_cached(&sql)?.query_map([id], rows::message)?.next().transpose()
    }
}
