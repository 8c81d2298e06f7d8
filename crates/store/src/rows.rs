//! What a backend does inside one transaction: single rows, by id.

use headwater_model::conversation::{MessageRecord, Place, SessionRecord, TurnRecord};
use headwater_model::{Revision, SessionId, WallTime};

use crate::BadMutation;
use crate::transfer::{StoredRow, Table};

/// The rows of a conversation store inside one transaction. [`apply`](crate::apply) makes every change out of these; what they have in common
/// is said here, so that backends only say how. Each statement is one step of the revision of each session whose rows it changes, but where a method says otherwise.
///
/// A record that a method answers with is the row as the database holds it after the statement.
#[expect(
    async_fn_in_trait,
    reason = "callers name the backend, so its futures are known to be Send where they are"
)]
pub trait Rows {
    /// The database's error. It ends the transaction.
    type Error;

    /// The revision of a session, zero where none is stored; none where there is no such session. Where several transactions can write at
    /// once, it is locked until this one ends.
    async fn revision(&mut self, session: &SessionId) -> Result<Option<Revision>, Self::Error>;

    /// A session.
    async fn session(&mut self, id: &str) -> Result<Option<SessionRecord>, Self::Error>;

    /// Whether a task is there.
    async fn has_task(&mut self, id: &str) -> Result<bool, Self::Error>;

    /// Adds a session.
    async fn insert_session(&mut self, new: &SessionRecord) -> Result<SessionRecord, Self::Error>;

    /// Removes a session with all that hangs on it. Answers whether there was one.
    async fn delete_session(&mut self, id: &str) -> Result<bool, Self::Error>;

    /// A message.
    async fn message(&mut self, id: &str) -> Result<Option<MessageRecord>, Self::Error>;

    /// The length of a message's content in bytes, and where the message stands; none where it is not in `session`. Content is not read.
    async fn message_head(&mut self, id: &str, session: &str) -> Result<Option<(u64, Place)>, Self::Error>;

    /// Adds a message.
    async fn insert_message(&mut self, new: &MessageRecord) -> Result<MessageRecord, Self::Error>;

    /// Adds `text` to the content of a message.
    async fn append(&mut self, id: &str, text: &str, at: WallTime) -> Result<MessageRecord, Self::Error>;

    /// Writes what is another in `changed` than in `stored`, of what can change of a message where it stands: type, content, whether it asks
    /// for input, metadata; and the time of the change. What is the same keeps its bytes, which may not be the text of the record.
    async fn update_message(
        &mut self,
        stored: &MessageRecord,
        changed: &MessageRecord,
    ) -> Result<MessageRecord, Self::Error>;

    /// Writes where a message stands: session, task, turn, time of the change.
    async fn move_message(&mut self, changed: &MessageRecord) -> Result<MessageRecord, Self::Error>;

    /// Removes a message.
    async fn delete_message(&mut self, id: &str) -> Result<(), Self::Error>;

    /// The time of the session's newest prompt.
    async fn newest_prompt(&mut self, session: &str) -> Result<Option<WallTime>, Self::Error>;

    /// The number of the session's next prompt, from 1: never one that was used before, whatever has been deleted since (C6). No step.
    async fn next_prompt_seq(&mut self, session: &str) -> Result<u64, Self::Error>;

    /// A turn.
    async fn turn(&mut self, id: &str) -> Result<Option<TurnRecord>, Self::Error>;

    /// Adds a turn.
    async fn insert_turn(&mut self, new: &TurnRecord) -> Result<TurnRecord, Self::Error>;

    /// Writes what can change of a turn: when it ended, profile, route, metadata, time of the change.
    async fn update_turn(&mut self, changed: &TurnRecord) -> Result<TurnRecord, Self::Error>;

    /// Removes a turn with its `messages` messages. Answers by how many steps that moves the revision of its session.
    async fn delete_turn(&mut self, id: &str, messages: usize) -> Result<u32, Self::Error>;

    /// Whether a message names the turn.
    async fn is_named(&mut self, turn: &str) -> Result<bool, Self::Error>;

    /// Where the messages of a turn stand, in any order.
    async fn places_of(&mut self, turn: &str) -> Result<Vec<Place>, Self::Error>;

    /// The messages of a turn whose metadata holds the text `tool_call_id`, in order of their ids.
    async fn tools_of(&mut self, turn: &str) -> Result<Vec<MessageRecord>, Self::Error>;
}

/// Rows as they are stored, column by column, inside one transaction: for taking in what was written out elsewhere.
#[expect(
    async_fn_in_trait,
    reason = "callers name the backend, so its futures are known to be Send where they are"
)]
pub trait RawRows: Rows {
    /// The row as this database would keep it.
    ///
    /// # Errors
    /// [`BadMutation`] where it cannot.
    fn kept(row: &StoredRow) -> Result<StoredRow, BadMutation>;

    /// The row of `table` with this key.
    async fn stored(&mut self, table: Table, key: &str) -> Result<Option<StoredRow>, Self::Error>;

    /// Adds a row; columns that it does not have get what the table says. The inner error is a rule of the table that refuses it.
    async fn insert(&mut self, row: &StoredRow) -> Result<Result<(), RefusedRow>, Self::Error>;

    /// Sets the last number of a session's prompts.
    async fn raise_prompt_seq(&mut self, session: &str, last: i64) -> Result<(), Self::Error>;
}

/// A row that a rule of its table refuses: what it belongs to is missing, a column must not be empty, and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedRow;
