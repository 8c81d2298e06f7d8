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
    /// The same, with the offset of each append set to the length that its message has.
    ApplyAtEnd(Batch),
}

/// Sequences of `length` steps; they begin with two tasks and two sessions, each with a turn and two messages.
pub fn steps(length: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), length)
        .prop_map(move |steps| [begin(0), begin(1)].into_iter().flatten().chain(steps).collect())
}

fn begin(number: usize) -> [Step; 3] {
    let (task, session, at) = (task_of(number), session_of(number), time_of(0));
    let turn = turn_of(number * 2);
    let message = |offset: usize, author| {
        Mutation::CreateMessage(NewMessage {
            id: message_of(number * 3 + offset),
            turn: turn.clone(),
            author,
            author_id: String::new(),
            kind: "tool_call".into(),
            content: "a".into(),
            requests_input: false,
            metadata: r#"{"tool_call_id":"c1"}"#.into(),
            created_at: None,
        })
    };
    let new_turn = NewTurn {
        id: turn.clone(),
        execution_profile_id: String::new(),
        route_generation: 0,
        metadata: r#"{"prompt_dispatch_pending":true}"#.into(),
        started_at: None,
    };
    let mutations = vec![Mutation::CreateTurn(new_turn), message(0, Author::Agent), message(1, Author::User)];
    [
        Step::CreateTask(task.clone()),
        Step::CreateSession(NewSession { id: session.clone(), task, name: String::new(), at }),
        Step::Apply(Batch { session, at, mutations }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => task().prop_map(Step::CreateTask),
        1 => task().prop_map(Step::DeleteTask),
        3 => (session(), task(), time())
            .prop_map(|(id, task, at)| Step::CreateSession(NewSession { id, task, name: "a name".into(), at })),
        1 => session().prop_map(Step::DeleteSession),
        8 => batch().prop_map(Step::Apply),
        40 => batch().prop_map(Step::ApplyAtEnd),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    sessions().prop_flat_map(|number| {
        // Mostly one mutation: the more there are, the likelier one is refused and takes the others with it.
        let mutations = prop_oneof![6 => vec(mutation(number), 1), 3 => vec(mutation(number), 0..5)];
        (time(), mutations).prop_map(move |(at, mutations)| Batch {
            session: session_of(number),
            at,
            mutations,
        })
    })
}

/// A mutation in the session `number`, mostly of records that belong to it.
fn mutation(number: usize) -> impl Strategy<Value = Mutation> {
    let (message, turn) = (message(number), turn(number));
    let elsewhere = sessions().prop_flat_map(|to| (Just(session_of(to)), self::turn(to)));
    prop_oneof![
        5 => new_message(number).prop_map(Mutation::CreateMessage),
        3 => new_turn(number).prop_map(Mutation::CreateTurn),
        3 => (message.clone(), 0_u64..12, text())
            .prop_map(|(message, offset_bytes, text)| Mutation::AppendContent { message, offset_bytes, text }),
        2 => (message.clone(), message_patch())
            .prop_map(|(message, patch)| Mutation::UpdateMessage { message, patch }),
        2 => (message.clone(), message_patch()).prop_map(|(message, patch)| Mutation::UpdateTool { message, patch }),
        1 => (message.clone(), text()).prop_map(|(message, status)| Mutation::Resolve { message, status }),
        3 => (message.clone(), elsewhere)
            .prop_map(|(message, (to_session, to_turn))| Mutation::MoveMessage { message, to_session, to_turn }),
        4 => message.prop_map(|message| Mutation::DeleteMessage { message }),
        2 => (turn.clone(), option::of(time()))
            .prop_map(|(turn, completed_at)| Mutation::CompleteTurn { turn, completed_at }),
        2 => (turn.clone(), turn_patch()).prop_map(|(turn, patch)| Mutation::UpdateTurn { turn, patch }),
        1 => turn.prop_map(|turn| Mutation::DeleteTurn { turn }),
    ]
}

fn new_message(number: usize) -> impl Strategy<Value = NewMessage> {
    let author = prop_oneof![Just(Author::User), Just(Author::Agent)];
    (
        message(number),
        turn(number),
        author,
        kind(),
        text(),
        any::<bool>(),
        metadata(),
        option::weighted(0.2, time()),
    )
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

fn new_turn(number: usize) -> impl Strategy<Value = NewTurn> {
    (turn(number), 0_i64..3, turn_metadata(), option::weighted(0.3, time())).prop_map(
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
        r#"{"tool_call_id":"c1"}"#,
        r#"{"tool_call_id":"c1","status":"pending"}"#,
        r#"{"tool_call_id":"c2", "status" : "complete"}"#,
        r#"{"tool_call_id":null}"#,
        r#"{"pending_id":"p1"}"#,
        r#"{"status":null,"result":"\u00e9","n":1.50}"#,
        r#"{"a":"\u0000"}"#,
        "[]",
    ])
    .prop_map(str::to_owned)
}

fn turn_metadata() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "{}",
        r#"{"prompt_dispatch_pending":true}"#,
        r#"{"prompt_dispatch_pending":"1"}"#,
        r#"{"prompt_dispatch_pending":1,"x":{"prompt_dispatch_pending":0}}"#,
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
    sessions().prop_map(session_of)
}

/// The number of a session, seldom the one that is not there from the start.
fn sessions() -> impl Strategy<Value = usize> {
    prop_oneof![9 => 0_usize..2, 1 => Just(2)]
}

/// A turn, mostly one of the two of session `number`.
fn turn(number: usize) -> impl Strategy<Value = TurnId> + Clone {
    prop_oneof![12 => number * 2..number * 2 + 2, 1 => 0_usize..6].prop_map(turn_of)
}

/// A message, mostly one of the three of session `number`.
fn message(number: usize) -> impl Strategy<Value = MessageId> + Clone {
    prop_oneof![12 => number * 3..number * 3 + 3, 1 => 0_usize..9].prop_map(message_of)
}

fn task_of(number: usize) -> TaskId {
    id(["task-a", "task-b", "task-c"][number], TaskId::new)
}

fn session_of(number: usize) -> SessionId {
    id(["ses-a", "ses-B", "ses_c"][number], SessionId::new)
}

fn turn_of(number: usize) -> TurnId {
    id(["t-1", "T2", "t1", "_t", "t10", "é"][number], TurnId::new)
}

fn message_of(number: usize) -> MessageId {
    id(["m-1", "M2", "m1", "_m", "é", "m10", "m2", "~", "數"][number], MessageId::new)
}

#[expect(clippy::expect_used, reason = "the ids are constants of this file")]
fn id<T, E: std::fmt::Debug>(text: &str, new: impl FnOnce(String) -> Result<T, E>) -> T {
    new(text.to_owned()).expect("a constant id")
}
