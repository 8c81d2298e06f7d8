//! What is asked of a writer, and its answer.

use headwater_model::conversation::{Author, Receipt};
use headwater_model::{ByteCount, MessageId, SessionId, TaskId, TurnId, WallTime};

/// Changes of one session that are written together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The session whose records change. A [`Mutation::MoveMessage`] changes another one too.
    pub session: SessionId,
    /// When it happens; what is created without a time of its own gets this one, cut to microseconds.
    pub at: WallTime,
    /// The changes, in order.
    pub mutations: Vec<Mutation>,
}

/// One change (C5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Adds a message. Repeating it with the same values changes nothing (C10).
    CreateMessage(NewMessage),
    /// Adds text to the end of a message.
    AppendContent {
        /// The message.
        message: MessageId,
        /// Bytes of content that the caller expects to be there (C10).
        offset_bytes: u64,
        /// What is added.
        text: String,
    },
    /// Changes fields of a message.
    UpdateMessage {
        /// The message.
        message: MessageId,
        /// Which fields.
        patch: MessagePatch,
    },
    /// Changes fields of a tool call: a message whose metadata has a `tool_call_id`.
    UpdateTool {
        /// The message.
        message: MessageId,
        /// Which fields.
        patch: MessagePatch,
    },
    /// Answers a request for permission or clarification that is still pending, by setting `status` in its metadata.
    Resolve {
        /// The message.
        message: MessageId,
        /// `approved`, `rejected`, `expired`, or what the host calls the outcome.
        status: String,
    },
    /// Moves a message to a turn of another session, or of the same one.
    MoveMessage {
        /// The message, of the batch's session.
        message: MessageId,
        /// Where it goes.
        to_session: SessionId,
        /// The turn there.
        to_turn: TurnId,
    },
    /// Removes a message.
    DeleteMessage {
        /// The message.
        message: MessageId,
    },
    /// Adds a turn. Repeating it with the same values changes nothing (C10).
    CreateTurn(NewTurn),
    /// Ends a turn that is still open, and completes its pending tool calls (C33).
    CompleteTurn {
        /// The turn.
        turn: TurnId,
        /// When it ended; none for the time of the batch.
        completed_at: Option<WallTime>,
    },
    /// Changes fields of a turn.
    UpdateTurn {
        /// The turn.
        turn: TurnId,
        /// Which fields.
        patch: TurnPatch,
    },
    /// Removes a turn with its messages.
    DeleteTurn {
        /// The turn.
        turn: TurnId,
    },
}

/// A message to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Its id, chosen by the caller, so that a repeated call is recognised.
    pub id: MessageId,
    /// The turn, of the batch's session.
    pub turn: TurnId,
    /// Who writes.
    pub author: Author,
    /// Who that is; may be empty.
    pub author_id: String,
    /// `message`, `tool_call`, `thinking` and so on.
    pub kind: String,
    /// The text.
    pub content: String,
    /// Whether it waits for an answer.
    pub requests_input: bool,
    /// A JSON object.
    pub metadata: String,
    /// For imports: when it was created. Without it the batch's time counts, and a prompt that would not be later than the one before
    /// it is put one microsecond behind that.
    pub created_at: Option<WallTime>,
}

/// Fields of a message that change; the others stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagePatch {
    /// The text.
    pub content: Option<String>,
    /// The type.
    pub kind: Option<String>,
    /// Whether it waits for an answer.
    pub requests_input: Option<bool>,
    /// The metadata.
    pub metadata: Option<MetadataChange>,
}

/// What becomes of metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataChange {
    /// This JSON object takes its place.
    Replace(String),
    /// The members of this JSON object are set one by one; `null` removes a member. Members that are not named keep their bytes.
    Merge(String),
}

/// A turn to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTurn {
    /// Its id, chosen by the caller, so that a repeated call is recognised.
    pub id: TurnId,
    /// Under which profile it runs; may be empty.
    pub execution_profile_id: String,
    /// Which route is in force.
    pub route_generation: i64,
    /// A JSON object. `prompt_dispatch_pending: true` reserves the turn: it is hidden until a message names it.
    pub metadata: String,
    /// For imports: when it began; none for the batch's time.
    pub started_at: Option<WallTime>,
}

/// Fields of a turn that change; the others stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnPatch {
    /// The profile.
    pub execution_profile_id: Option<String>,
    /// The route.
    pub route_generation: Option<i64>,
    /// The metadata.
    pub metadata: Option<MetadataChange>,
}

/// A session to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id, chosen by the caller, so that a repeated call is recognised.
    pub id: SessionId,
    /// The task that owns it.
    pub task: TaskId,
    /// What people call it; may be empty.
    pub name: String,
    /// When it begins.
    pub at: WallTime,
}

/// What a batch did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// One receipt for each session that the batch names, sorted by session id. A session in which nothing changed has one without a step.
    pub receipts: Vec<Receipt>,
}

/// Most bytes that the content of one message may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentLimit(pub ByteCount);

impl Default for ContentLimit {
    /// 16 MiB.
    fn default() -> Self {
        Self(ByteCount::from_mib(16))
    }
}
