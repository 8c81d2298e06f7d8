//! The visible history of one session, as a client holds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use headwater_model::conversation::{MessageRecord, Operation, Place, TurnRecord};

/// Messages and visible turns by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    messages: BTreeMap<String, MessageRecord>,
    turns: BTreeMap<String, TurnRecord>,
}

impl View {
    /// The view of these records.
    pub(super) fn new(
        messages: impl IntoIterator<Item = MessageRecord>,
        turns: impl IntoIterator<Item = TurnRecord>,
    ) -> Self {
        Self {
            messages: messages.into_iter().map(|message| (message.id.clone(), message)).collect(),
            turns: turns.into_iter().map(|turn| (turn.id.clone(), turn)).collect(),
        }
    }

    /// What turns this view into `after`, one operation for each record that differs.
    pub(super) fn operations_to(&self, after: &Self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (id, message) in &self.messages {
            if !after.messages.contains_key(id) {
                operations.push(Operation::MessageRemove { previous: message.place() });
            }
        }
        for (id, turn) in &self.turns {
            if !after.turns.contains_key(id) {
                operations.push(Operation::TurnRemove { previous: turn.place() });
            }
        }
        for (id, message) in &after.messages {
            let before = self.messages.get(id);
            if before != Some(message) {
                let previous = before.map(MessageRecord::place);
                operations.push(Operation::MessageUpsert { record: Arc::new(message.clone()), previous });
            }
        }
        for (id, turn) in &after.turns {
            let before = self.turns.get(id);
            if before != Some(turn) {
                let previous = before.map(TurnRecord::place);
                operations.push(Operation::TurnUpsert { record: Arc::new(turn.clone()), previous });
            }
        }
        operations
    }

    /// Applies an operation as a client does.
    ///
    /// # Errors
    /// What is wrong, where the previous place is not the one that this view knows.
    pub(super) fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        let known = if operation.is_message() {
            self.messages.get(operation.id()).map(MessageRecord::place)
        } else {
            self.turns.get(operation.id()).map(TurnRecord::place)
        };
        let named: Option<&Place> = match operation {
            Operation::MessageUpsert { previous, .. } | Operation::TurnUpsert { previous, .. } => {
                previous.as_ref()
            }
            Operation::MessageRemove { previous } | Operation::TurnRemove { previous } => Some(previous),
        };
        if known.as_ref() != named {
            return Err(format!("{} stood at {known:?}, the operation says {named:?}", operation.id()));
        }
        match operation {
            Operation::MessageUpsert { record, .. } => {
                self.messages.insert(record.id.clone(), (**record).clone());
            }
            Operation::TurnUpsert { record, .. } => {
                self.turns.insert(record.id.clone(), (**record).clone());
            }
            Operation::MessageRemove { previous } => {
                self.messages.remove(&previous.order.id);
            }
            Operation::TurnRemove { previous } => {
                self.turns.remove(&previous.order.id);
            }
        }
        Ok(())
    }

    /// The messages with their places.
    pub(super) fn into_messages(self) -> Vec<(Place, MessageRecord)> {
        self.messages.into_values().map(|message| (message.place(), message)).collect()
    }

    /// The turns with their places.
    pub(super) fn into_turns(self) -> Vec<(Place, TurnRecord)> {
        self.turns.into_values().map(|turn| (turn.place(), turn)).collect()
    }
}
