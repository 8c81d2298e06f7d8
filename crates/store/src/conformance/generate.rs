//! Random sequences over few ids, so that they meet.

use std::ops::Range;

use headwater_model::conversation::Author;
use headwater_model::{MessageId, SessionId, TaskId, TurnId, WallTime};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{Batch, MessagePatch, MetadataChange, Mutation, NewMessage, NewSession, NewTurn, TurnPatch};

/// What happens next to a store.
#[derive(Clone, Debug)]
pub enum Step {
    /// The agent host adds a task.
    CreateTask(TaskId),
    /// The agent host removes a task.
    DeleteTask(TaskId),
    /// A session begins.
    CreateSession(NewSession),
    /// A session goes.
    DeleteSession(SessionId),
    /// Records of a session change.
    Apply(Batch),
}

/// Sequences of `length` steps; they begin with two tasks and two sessions.
pub fn steps(length: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let begin = |number: usize| {
        let task = task_of(number);
        let session =
            NewSession { id: session_of(number), task: task.clone(), name: String::new(), at: time_of(0) };
        [Step::CreateTask(task), Step::CreateSession(session)]
    };
    vec(step(), length)
        .prop_map(move |steps| [begin(0), begin(1)].into_iter().flatten().chain(steps).collect())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => task().prop_map(Step::CreateTask),
        1 => task().prop_map(Step::DeleteTask),
        3 => (session(), task(), time())
            .prop_map(|(id, task, at)| Step::CreateSession(NewSession { id, task, name: "a name".into(), at })),
        1 => session().prop_map(Step::DeleteSession),
        24 => batch().prop_map(Step::Apply),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    (session(), time(), vec(mutation(), 0..5)).prop_map(|(session, at, mutations)| Batch {
        session,
        at,
        mutations,
    })
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        5 => new_message().prop_map(Mutation::CreateMessage),
        4 => new_turn().prop_map(Mutation::CreateTurn),
        3 => (message(), 0_u64..12, text())
            .prop_map(|(message, offset_bytes, text)| Mutation::AppendContent { message, offset_bytes, text }),
        2 => (message(), message_patch()).prop_map(|(message, patch)| Mutation::UpdateMessage { message, patch }),
        2 => (message(), message_patch()).prop_map(|(message, patch)| Mutation::UpdateTool { message, patch }),
        1 => (message(), text()).prop_map(|(message, status)| Mutation::Resolve { message, status }),
        1 => (message(), session(), turn())
            .prop_map(|(message, to_session, to_turn)| Mutation::MoveMessage { message, to_session, to_turn }),
        1 => message().prop_map(|message| Mutation::DeleteMessage { message }),
        2 => (turn(), option::of(time()))
            .prop_map(|(turn, completed_at)| Mutation::CompleteTurn { turn, completed_at }),
        2 => (turn(), turn_patch()).prop_map(|(turn, patch)| Mutation::UpdateTurn { turn, patch }),
        1 => turn().prop_map(|turn| Mutation::DeleteTurn { turn }),
    ]
}

fn new_message() -> impl Strategy<Value = NewMessage> {
    let author = prop_oneof![Just(Author::User), Just(Author::Agent)];
    (message(), turn(), author, kind(), text(), any::<bool>(), metadata(), option::weighted(0.3, time()))
        .prop_map(|(id, turn, author, kind, content, requests_input, metadata, created_at)| NewMessage {
            id,
            turn,
            author,
            author_id: "someone".into(),
            kind,
            content,
            requests_input,
            metadata,
            created_at,
        })
}

fn new_turn() -> impl Strategy<Value = NewTurn> {
    (turn(), 0_i64..3, turn_metadata(), option::weighted(0.3, time())).prop_map(
        |(id, route_generation, metadata, started_at)| NewTurn {
            id,
            execution_profile_id: String::new(),
            route_generation,
            metadata,
            started_at,
        },
    )
}

fn message_patch() -> impl Strategy<Value = MessagePatch> {
    (option::of(text()), option::of(kind()), option::of(any::<bool>()), option::of(change(metadata())))
        .prop_map(|(content, kind, requests_input, metadata)| MessagePatch {
            content,
            kind,
            requests_input,
            metadata,
        })
}

fn turn_patch() -> impl Strategy<Value = TurnPatch> {
    (option::of(text()), option::of(0_i64..3), option::of(change(turn_metadata()))).prop_map(
        |(execution_profile_id, route_generation, metadata)| TurnPatch {
            execution_profile_id,
            route_generation,
            metadata,
        },
    )
}

fn change(metadata: impl Strategy<Value = String>) -> impl Strategy<Value = MetadataChange> {
    (any::<bool>(), metadata).prop_map(|(merge, metadata)| {
        if merge { MetadataChange::Merge(metadata) } else { MetadataChange::Replace(metadata) }
    })
}

fn metadata() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "{}",
        r#"{"tool_call_id":"c1","status":"pending"}"#,
        r#"{"tool_call_id":"c2", "status" : "complete"}"#,
        r#"{"tool_call_id":null}"#,
        r#"{"pending_id":"p1"}"#,
        r#"{"status":null,"result":"\u00e9","n":1.50}"#,
        "{",
        "[]",
        r#"{"a":"\u0000"}"#,
    ])
    .prop_map(str::to_owned)
}

fn turn_metadata() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "{}",
        r#"{"prompt_dispatch_pending":true}"#,
        r#"{"prompt_dispatch_pending":"1"}"#,
        r#"{"prompt_dispatch_pending":false,"x":1}"#,
        r#"{"prompt_dispatch_pending":null}"#,
        "null",
    ])
    .prop_map(str::to_owned)
}

fn kind() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "message", "tool_call", "permission_request", "clarification_request"])
        .prop_map(str::to_owned)
}

/// Longer ones pass the limit of 12 bytes that the suite sets.
fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "é", "數字", "say \"hi\"", "three words long", "nul\0"])
        .prop_map(str::to_owned)
}

fn time() -> impl Strategy<Value = WallTime> {
    (0_i64..6).prop_map(time_of)
}

fn time_of(number: i64) -> WallTime {
    WallTime::from_unix_micros(1_790_000_000_000_000 + number).unwrap_or(WallTime::UNKNOWN)
}

fn task() -> impl Strategy<Value = TaskId> {
    (0_usize..3).prop_map(task_of)
}

fn session() -> impl Strategy<Value = SessionId> {
    (0_usize..3).prop_map(session_of)
}

fn turn() -> impl Strategy<Value = TurnId> {
    (0_usize..4).prop_map(|number| id(["t-1", "T2", "t1", "_t"][number], TurnId::new))
}

fn message() -> impl Strategy<Value = MessageId> {
    (0_usize..6).prop_map(|number| id(["m-1", "M2", "m1", "_m", "é", "m10"][number], MessageId::new))
}

fn task_of(number: usize) -> TaskId {
    id(["task-a", "task-b", "task-c"][number], TaskId::new)
}

fn session_of(number: usize) -> SessionId {
    id(["ses-a", "ses-B", "ses_c"][number], SessionId::new)
}

#[expect(clippy::expect_used, reason = "the ids are constants of this file")]
fn id<T, E: std::fmt::Debug>(text: &str, new: impl FnOnce(String) -> Result<T, E>) -> T {
    new(text.to_owned()).expect("a constant id")
}
