//! A database with two sessions, and a plain connection beside the store.

use std::time::Duration;

use headwater_model::conversation::{Author, MessageRecord, Receipt};
use headwater_model::{MessageId, Revision, SessionId, TaskId, TurnId, WallTime};
use headwater_store::{
    Batch, ConversationSource, ConversationWriter, Mutation, NewMessage, NewSession, NewTurn, PageQuery,
    WriteError,
};
use headwater_store_postgres::{PostgresOptions, PostgresStore};
use tokio_postgres::{Client, NoTls};

/// Long enough for whatever a test has in store for a call.
pub(crate) const PATIENT: PostgresOptions = PostgresOptions {
    connections: 8,
    wait: Duration::from_mins(1),
    content_limit: headwater_store::ContentLimit(headwater_model::ByteCount::from_mib(16)),
};

pub(crate) async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub(crate) fn time(micros: i64) -> WallTime {
    WallTime::from_unix_micros(1_790_000_000_000_000 + micros).unwrap()
}

/// Opens the database and adds sessions, each with a turn of its name.
pub(crate) async fn open(address: &str, sessions: &[&str]) -> PostgresStore {
    let store = PostgresStore::open(address, PATIENT).await.unwrap();
    let task = "INSERT INTO tasks (id, title, created_at, updated_at) VALUES ('task', '', now(), now())";
    connect(address).await.batch_execute(task).await.unwrap();
    for id in sessions {
        store.create_session(new_session(id)).await.unwrap();
        apply(&store, id, vec![Mutation::CreateTurn(new_turn(id))]).await.unwrap();
    }
    store
}

pub(crate) fn new_session(id: &str) -> NewSession {
    NewSession { id: session(id), task: TaskId::new("task").unwrap(), name: String::new(), at: time(0) }
}

pub(crate) fn new_turn(id: &str) -> NewTurn {
    NewTurn {
        id: TurnId::new(id).unwrap(),
        execution_profile_id: String::new(),
        route_generation: 0,
        metadata: "{}".into(),
        started_at: None,
    }
}

/// Adds a turn whose id is a text of any kind.
pub(crate) fn new_turn_named(name: &str) -> Mutation {
    Mutation::CreateTurn(new_turn(&name.replace(' ', "-")))
}

/// A tool's message in the turn `turn`.
pub(crate) fn create(id: &str, turn: &str) -> Mutation {
    Mutation::CreateMessage(NewMessage {
        id: MessageId::new(id).unwrap(),
        turn: TurnId::new(turn).unwrap(),
        author: Author::Agent,
        author_id: String::new(),
        kind: "tool_call".into(),
        content: "text".into(),
        requests_input: false,
        metadata: r#"{"tool_call_id":"c"}"#.into(),
        created_at: None,
    })
}

pub(crate) fn append(id: &str, offset_bytes: u64) -> Mutation {
    Mutation::AppendContent { message: MessageId::new(id).unwrap(), offset_bytes, text: "more".into() }
}

pub(crate) fn move_to(id: &str, to: &str) -> Mutation {
    Mutation::MoveMessage {
        message: MessageId::new(id).unwrap(),
        to_session: session(to),
        to_turn: TurnId::new(to).unwrap(),
    }
}

pub(crate) async fn apply(
    store: &PostgresStore,
    id: &str,
    mutations: Vec<Mutation>,
) -> Result<Vec<Receipt>, WriteError> {
    let written = store.apply(Batch { session: session(id), at: time(1), mutations }).await?;
    Ok(written.receipts)
}

pub(crate) async fn revision(store: &PostgresStore, id: &str) -> Revision {
    store.revision(&session(id)).await.unwrap().unwrap()
}

pub(crate) async fn messages(store: &PostgresStore, id: &str) -> Vec<MessageRecord> {
    store.messages(&PageQuery::of(session(id))).await.unwrap().records
}

pub(crate) async fn number(plain: &Client, sql: &str) -> i64 {
    plain.query_one(&format!("SELECT ({sql})::bigint"), &[]).await.unwrap().get(0)
}

/// Waits until `count` connections wait for a lock.
pub(crate) async fn until_waiting(plain: &Client, count: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while number(plain, waiting).await < count {
        tokio::task::yield_now().await;
    }
}
