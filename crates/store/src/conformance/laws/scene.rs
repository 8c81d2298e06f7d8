//! A session to play with.

use headwater_model::conversation::{Author, Receipt};
use headwater_model::{MessageId, Revision, SessionId, TaskId, TurnId, WallTime};

use crate::conformance::Fixture;
use crate::{
    Batch, ConversationSource, ConversationWriter, Mutation, NewMessage, NewSession, NewTurn, WriteError,
};

/// The time `micros` microseconds into the scene.
pub(super) fn time(micros: i64) -> WallTime {
    WallTime::from_unix_micros(1_790_000_000_000_000 + micros).expect("a time of this century")
}

pub(super) fn session(id: &str) -> SessionId {
    SessionId::new(id).expect("an id")
}

pub(super) fn turn(id: &str) -> TurnId {
    TurnId::new(id).expect("an id")
}

pub(super) fn message(id: &str) -> MessageId {
    MessageId::new(id).expect("an id")
}

/// Adds a session with a turn, both named `id`, in a task named `task`.
pub(super) async fn begin<F: Fixture>(fixture: &F, id: &str, task: &str) -> SessionId {
    let task = TaskId::new(task).expect("an id");
    fixture.create_task(&task).await;
    let new = NewSession { id: session(id), task, name: String::new(), at: time(0) };
    fixture.store().create_session(new).await.expect("a session");
    apply(fixture, id, 0, vec![Mutation::CreateTurn(new_turn(id))]).await.expect("a turn");
    session(id)
}

/// Writes a batch whose receipts are all contiguous.
pub(super) async fn apply<F: Fixture>(
    fixture: &F,
    id: &str,
    at: i64,
    mutations: Vec<Mutation>,
) -> Result<Vec<Receipt>, WriteError> {
    let batch = Batch { session: session(id), at: time(at), mutations };
    fixture.store().apply(batch).await.map(|written| written.receipts)
}

pub(super) async fn revision<F: Fixture>(fixture: &F, id: &str) -> Option<Revision> {
    fixture.store().revision(&session(id)).await.expect("a revision")
}

pub(super) fn new_turn(id: &str) -> NewTurn {
    NewTurn {
        id: turn(id),
        execution_profile_id: String::new(),
        route_generation: 0,
        metadata: "{}".into(),
        started_at: None,
    }
}

/// A message in the turn `turn_id`.
pub(super) fn new_message(id: &str, turn_id: &str, author: Author) -> NewMessage {
    NewMessage {
        id: message(id),
        turn: turn(turn_id),
        author,
        author_id: String::new(),
        kind: "message".into(),
        content: "text".into(),
        requests_input: false,
        metadata: "{}".into(),
        created_at: None,
    }
}

/// An agent's message in the turn that is named like the session.
pub(super) fn create(id: &str, turn_id: &str) -> Mutation {
    Mutation::CreateMessage(new_message(id, turn_id, Author::Agent))
}
