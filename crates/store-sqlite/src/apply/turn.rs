//! Turns, and when they are visible (C33).

use headwater_model::conversation::{MessageRecord, Operation, TurnRecord};
use headwater_model::{TurnId, WallTime};
use headwater_store::{BadMutation, NewTurn, TurnPatch, rules};

use crate::apply::batch::Writing;
use crate::failure::MutationFailure;
use crate::rows;

impl Writing<'_> {
    pub(super) fn create_turn(&mut self, new: &NewTurn) -> Result<(), MutationFailure> {
        rules::ensure_text(&new.execution_profile_id)?;
        rules::ensure_text(&new.metadata)?;
        rules::Metadata::parse(&new.metadata)?;
        if let Some(stored) = self.find_turn(new.id.as_str())? {
            let same = stored.session_id == self.session();
            return if same { Ok(()) } else { Err(BadMutation::DuplicateId.into()) };
        }
        let started_at = new.started_at.unwrap_or(self.batch.at).cut_to_micros();
        let sql = format!(
            "INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, execution_profile_id, route_generation,
                 metadata, created_at, updated_at)
             SELECT ?1, id, task_id, ?3, ?4, ?5, ?6, ?7, ?7 FROM task_sessions WHERE id = ?2 RETURNING {}",
            rows::turn_columns()
        );
        let values = rusqlite::params![
            new.id.as_str(),
            self.session(),
            started_at.stored_text(),
            new.execution_profile_id,
            new.route_generation,
            new.metadata,
            self.at(),
        ];
        let record = self.db.prepare_cached(&sql)?.query_row(values, rows::turn)?;
        let session = record.session_id.clone();
        self.recorder.row(&session);
        if self.is_visible(&record)? {
            self.recorder.turn(&session, record, None);
        }
        Ok(())
    }

    /// Ends a turn and completes its pending tool calls, in one receipt.
    pub(super) fn complete_turn(
        &mut self,
        id: &TurnId,
        completed_at: Option<WallTime>,
    ) -> Result<(), MutationFailure> {
        let stored = self.turn(id, self.session())?;
        if stored.completed_at.is_some() {
            return Ok(());
        }
        let completed_at = Some(completed_at.unwrap_or(self.batch.at).cut_to_micros());
        self.store_turn(&stored, &TurnRecord { completed_at, ..stored.clone() })?;
        for message in self.tools_of(&stored)? {
            if let Some(metadata) = rules::completed_tool(&message.kind, &message.metadata) {
                self.store_message(&message, &MessageRecord { metadata, ..message.clone() })?;
            }
        }
        Ok(())
    }

    /// Messages of a turn that may be tool calls: what they are is decided by their metadata. Few messages speak of a call, so the others
    /// are not read.
    fn tools_of(&self, turn: &TurnRecord) -> rusqlite::Result<Vec<MessageRecord>> {
        let sql = format!(
            "SELECT {} FROM task_session_messages WHERE turn_id = ?1 AND metadata LIKE '%tool_call_id%' ORDER BY rowid",
            rows::message_columns()
        );
        self.db.prepare_cached(&sql)?.query_map([&turn.id], rows::message)?.collect()
    }

    pub(super) fn update_turn(&mut self, id: &TurnId, patch: &TurnPatch) -> Result<(), MutationFailure> {
        let stored = self.turn(id, self.session())?;
        let mut changed = stored.clone();
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
        self.store_turn(&stored, &changed)
    }

    /// Removes a turn; foreign keys take its messages, which are named first.
    pub(super) fn delete_turn(&mut self, id: &TurnId) -> Result<(), MutationFailure> {
        let stored = self.turn(id, self.session())?;
        let was_visible = self.is_visible(&stored)?;
        let sql = format!(
            "SELECT {} FROM task_session_messages WHERE turn_id = ?1 ORDER BY rowid",
            rows::message_columns()
        );
        let places: Vec<_> = self
            .db
            .prepare_cached(&sql)?
            .query_map([&stored.id], |row| {
                rows::message(row).map(|message| (message.session_id.clone(), message.place()))
            })?
            .collect::<rusqlite::Result<_>>()?;
        self.db.prepare_cached("DELETE FROM task_session_turns WHERE id = ?1")?.execute([&stored.id])?;
        for (session, previous) in places {
            self.recorder.row(&session);
            self.recorder.operation(&session, Operation::MessageRemove { previous });
        }
        self.recorder.row(&stored.session_id);
        if was_visible {
            self.recorder.operation(&stored.session_id, Operation::TurnRemove { previous: stored.place() });
        }
        Ok(())
    }

    fn store_turn(&mut self, stored: &TurnRecord, changed: &TurnRecord) -> Result<(), MutationFailure> {
        if stored == changed {
            return Ok(());
        }
        let was_visible = self.is_visible(stored)?;
        let sql = format!(
            "UPDATE task_session_turns SET completed_at = ?2, execution_profile_id = ?3, route_generation = ?4, metadata = ?5,
                 updated_at = ?6
             WHERE id = ?1 RETURNING {}",
            rows::turn_columns()
        );
        let values = rusqlite::params![
            changed.id,
            changed.completed_at.map(WallTime::stored_text),
            changed.execution_profile_id,
            changed.route_generation,
            changed.metadata,
            self.at(),
        ];
        let record = self.db.prepare_cached(&sql)?.query_row(values, rows::turn)?;
        let session = stored.session_id.as_str();
        self.recorder.row(session);
        match (was_visible, self.is_visible(&record)?) {
            (true, true) => self.recorder.turn(session, record, Some(stored.place())),
            (false, true) => self.recorder.turn(session, record, None),
            (true, false) => {
                self.recorder.operation(session, Operation::TurnRemove { previous: stored.place() });
            }
            (false, false) => {}
        }
        Ok(())
    }

    /// Whether a turn is in the history: reserved ones only where a message names them.
    pub(super) fn is_visible(&self, turn: &TurnRecord) -> rusqlite::Result<bool> {
        if !rules::is_reserved(&turn.metadata) {
            return Ok(true);
        }
        let named = "SELECT EXISTS (SELECT 1 FROM task_session_messages WHERE turn_id = ?1)";
        self.db.prepare_cached(named)?.query_row([&turn.id], |row| row.get(0))
    }

    /// The turn that a message names.
    pub(super) fn turn_of(&self, message: &MessageRecord) -> rusqlite::Result<Option<TurnRecord>> {
        message.turn_id.as_deref().map_or(Ok(None), |id| self.find_turn(id))
    }

    /// Records that `turn`, which a message has just left, is hidden again where it is.
    pub(super) fn record_hidden(&mut self, turn: Option<TurnRecord>) -> Result<(), MutationFailure> {
        if let Some(turn) = turn
            && !self.is_visible(&turn)?
        {
            self.recorder.operation(&turn.session_id, Operation::TurnRemove { previous: turn.place() });
        }
        Ok(())
    }

    /// A turn of `session`.
    pub(super) fn turn(&self, id: &TurnId, session: &str) -> Result<TurnRecord, MutationFailure> {
        let stored = self.find_turn(id.as_str())?;
        Ok(stored.filter(|stored| stored.session_id == session).ok_or(BadMutation::UnknownTurn)?)
    }

    fn find_turn(&self, id: &str) -> rusqlite::Result<Option<TurnRecord>> {
        let sql = format!("SELECT {} FROM task_session_turns WHERE id = ?1", rows::turn_columns());
        self.db.prepare_cached(&sql)?.query_map([id], rows::turn)?.next().transpose()
    }
}
