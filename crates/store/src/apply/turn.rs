//! Turns, and when they are visible (C33).

use headwater_model::conversation::{MessageRecord, Operation, TurnRecord};
use headwater_model::{TurnId, WallTime};

use crate::apply::batch::Writing;
use crate::apply::{MutationFailure, OrRefuse};
use crate::{BadMutation, NewTurn, Rows, TurnPatch, rules};

impl<R: Rows> Writing<'_, R> {
    pub(super) async fn create_turn(&mut self, new: &NewTurn) -> Result<(), MutationFailure<R::Error>> {
        rules::ensure_text(&new.execution_profile_id).or_refuse()?;
        rules::ensure_text(&new.metadata).or_refuse()?;
        rules::Metadata::parse(&new.metadata).or_refuse()?;
        if let Some(stored) = self.rows.turn(new.id.as_str()).await? {
            let same = stored.session_id == self.session();
            return if same { Ok(()) } else { Err(MutationFailure::Refused(BadMutation::DuplicateId)) };
        }
        let session = self.rows.session(self.batch.session.as_str()).await?;
        let started_at = new.started_at.unwrap_or(self.batch.at).cut_to_micros();
        let record = TurnRecord {
            id: new.id.to_string(),
            session_id: self.session().to_owned(),
            task_id: session.map(|session| session.task_id),
            execution_profile_id: new.execution_profile_id.clone(),
            route_generation: new.route_generation,
            metadata: new.metadata.clone(),
            started_at,
            completed_at: None,
            created_at: self.at(),
            updated_at: self.at(),
            order_time: Some(started_at.order_time()),
        };
        let record = self.rows.insert_turn(&record).await?;
        self.recorder.steps(&record.session_id, 1);
        if self.is_visible(&record).await? {
            self.recorder.turn(record, None);
        }
        Ok(())
    }

    /// Ends a turn and completes its pending tool calls, in one receipt.
    pub(super) async fn complete_turn(
        &mut self,
        id: &TurnId,
        completed_at: Option<WallTime>,
    ) -> Result<(), MutationFailure<R::Error>> {
        let stored = self.turn(id, self.batch.session.as_str()).await?;
        if stored.completed_at.is_some() {
            return Ok(());
        }
        let completed_at = Some(completed_at.unwrap_or(self.batch.at).cut_to_micros());
        let tools = self.rows.tools_of(&stored.id).await?;
        self.store_turn(&stored, TurnRecord { completed_at, ..stored.clone() }).await?;
        for message in tools {
            if let Some(metadata) = rules::completed_tool(&message.kind, &message.metadata) {
                let completed = MessageRecord { metadata, ..message.clone() };
                self.store_message(message, completed).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn update_turn(
        &mut self,
        id: &TurnId,
        patch: &TurnPatch,
    ) -> Result<(), MutationFailure<R::Error>> {
        let stored = self.turn(id, self.batch.session.as_str()).await?;
        let mut changed = stored.clone();
        if let Some(profile) = &patch.execution_profile_id {
            rules::ensure_text(profile).or_refuse()?;
            changed.execution_profile_id.clone_from(profile);
        }
        if let Some(generation) = patch.route_generation {
            changed.route_generation = generation;
        }
        if let Some(change) = &patch.metadata {
            changed.metadata = rules::changed_metadata(&changed.metadata, change).or_refuse()?;
        }
        self.store_turn(&stored, changed).await
    }

    /// Removes a turn with its messages, which are named first.
    pub(super) async fn delete_turn(&mut self, id: &TurnId) -> Result<(), MutationFailure<R::Error>> {
        let stored = self.turn(id, self.batch.session.as_str()).await?;
        let was_visible = self.is_visible(&stored).await?;
        let places = self.rows.places_of(&stored.id).await?;
        let steps = self.rows.delete_turn(&stored.id, places.len()).await?;
        self.recorder.steps(&stored.session_id, steps);
        for previous in places {
            self.recorder.operation(&stored.session_id, Operation::MessageRemove { previous });
        }
        if was_visible {
            self.recorder.operation(&stored.session_id, Operation::TurnRemove { previous: stored.place() });
        }
        Ok(())
    }

    async fn store_turn(
        &mut self,
        stored: &TurnRecord,
        mut changed: TurnRecord,
    ) -> Result<(), MutationFailure<R::Error>> {
        if *stored == changed {
            return Ok(());
        }
        changed.updated_at = self.at();
        let was_visible = self.is_visible(stored).await?;
        let record = self.rows.update_turn(&changed).await?;
        self.recorder.steps(&stored.session_id, 1);
        match (was_visible, self.is_visible(&record).await?) {
            (true, true) => self.recorder.turn(record, Some(stored.place())),
            (false, true) => self.recorder.turn(record, None),
            (true, false) => {
                self.recorder
                    .operation(&stored.session_id, Operation::TurnRemove { previous: stored.place() });
            }
            (false, false) => {}
        }
        Ok(())
    }

    /// Whether a turn is in the history: reserved ones only where a message names them.
    pub(super) async fn is_visible(&mut self, turn: &TurnRecord) -> Result<bool, R::Error> {
        Ok(!rules::is_reserved(&turn.metadata) || self.rows.is_named(&turn.id).await?)
    }

    /// The turn that a message names.
    pub(super) async fn turn_of(&mut self, message: &MessageRecord) -> Result<Option<TurnRecord>, R::Error> {
        match &message.turn_id {
            Some(id) => self.rows.turn(id).await,
            None => Ok(None),
        }
    }

    /// Records that `turn`, which a message has just left, is hidden again where it is.
    pub(super) async fn record_hidden(
        &mut self,
        turn: Option<TurnRecord>,
    ) -> Result<(), MutationFailure<R::Error>> {
        if let Some(turn) = turn
            && !self.is_visible(&turn).await?
        {
            self.recorder.operation(&turn.session_id, Operation::TurnRemove { previous: turn.place() });
        }
        Ok(())
    }

    /// A turn of `session`.
    pub(super) async fn turn(
        &mut self,
        id: &TurnId,
        session: &str,
    ) -> Result<TurnRecord, MutationFailure<R::Error>> {
        let stored = self.rows.turn(id.as_str()).await?;
        let of_session = stored.filter(|stored| stored.session_id == session);
        of_session.ok_or(MutationFailure::Refused(BadMutation::UnknownTurn))
    }
}
