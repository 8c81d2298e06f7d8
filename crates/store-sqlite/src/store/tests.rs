//! A disk that is full, a file that cannot be written, and programs that pay no heed to foreign keys or drop triggers: a typed error, nothing by
//! halves, and the next call works.

use headwater_model::conversation::{Author, Coverage, Operation};
use headwater_model::{MessageId, OrderTime, TaskId, TurnId, WallTime};
use headwater_store::conformance::whole;
use headwater_store::{MessagePatch, Mutation, NewMessage, NewTurn, Retry};

use super::*;

const CANARY: &str = "canary-7f3a";

struct InFile {
    folder: tempfile::TempDir,
    store: SqliteStore,
}

impl InFile {
    /// A store with the session `a` and a turn of that name, whose writing connection is as `prepare` leaves it.
    async fn new(prepare: impl FnOnce(&rusqlite::Connection)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let first = Self { folder, store: SqliteStore::open(&path, SqliteOptions::default()).unwrap() };
        let now = "'2026-01-01 00:00:00'";
        first
            .past()
            .execute(
                &format!(
                    "INSERT INTO tasks (id, title, created_at, updated_at) VALUES ('task', '', {now}, {now})"
                ),
                [],
            )
            .unwrap();
        first.store.create_session(new_session("a")).await.unwrap();
        first.apply(vec![Mutation::CreateTurn(new_turn("a"))]).await.unwrap();
        let db = connection::open_writer(&path, &SqliteOptions::default()).unwrap();
        prepare(&db);
        let writer = Writer::start(db, headwater_store::ContentLimit::default()).unwrap();
        Self { store: SqliteStore { writer, ..first.store }, folder: first.folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn past(&self) -> rusqlite::Connection {
        let db = connection::open_writer(&self.path(), &SqliteOptions::default()).unwrap();
        db.pragma_update(None, "foreign_keys", false).unwrap();
        db
    }

    async fn apply(&self, mutations: Vec<Mutation>) -> Result<Written, WriteError> {
        let at = WallTime::from_unix_micros(1_790_000_000_000_000).unwrap();
        self.store.apply(Batch { session: session("a"), at, mutations }).await
    }

    async fn revision(&self) -> Revision {
        self.store.revision(&session("a")).await.unwrap().unwrap()
    }

    fn count(&self, sql: &str) -> i64 {
        self.past().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn new_session(id: &str) -> NewSession {
    let at = WallTime::from_unix_micros(1_790_000_000_000_000).unwrap();
    NewSession { id: session(id), task: TaskId::new("task").unwrap(), name: String::new(), at }
}

fn new_turn(id: &str) -> NewTurn {
    NewTurn {
        id: TurnId::new(id).unwrap(),
        execution_profile_id: String::new(),
        route_generation: 0,
        metadata: "{}".into(),
        started_at: None,
    }
}

/// A message of `bytes` bytes.
fn create(id: &str, bytes: usize) -> Mutation {
    Mutation::CreateMessage(NewMessage {
        id: MessageId::new(id).unwrap(),
        turn: TurnId::new("a").unwrap(),
        author: Author::Agent,
        author_id: String::new(),
        kind: "message".into(),
        content: CANARY.repeat(bytes / CANARY.len() + 1),
        requests_input: false,
        metadata: "{}".into(),
        created_at: None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_takes_no_part_of_a_batch() {
    let full = |db: &rusqlite::Connection| {
        let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        db.pragma_update_and_check(None, "max_page_count", pages + 40, |_| Ok(())).unwrap();
    };
    let file = InFile::new(full).await;
    file.apply(vec![create("first", 60_000)]).await.unwrap();
    let before = file.revision().await;
    // Beside others in one transaction: they are written, each with its receipt.
    let (small, big, other) = tokio::join!(
        file.apply(vec![create("small", 10)]),
        file.apply(vec![create("one", 10), create("two", 400_000), create("three", 10)]),
        file.apply(vec![create("other", 10)]),
    );
    let error = big.unwrap_err();
    assert!(matches!(error.0, WriteErrorKind::Full), "{error:?}");
    assert_eq!(error.retry(), Retry::Later);
    assert!(!whole(&error).contains(CANARY));
    assert!(small.unwrap().receipts[0].is_step() && other.unwrap().receipts[0].is_step());
    assert_eq!(
        file.count("SELECT count(*) FROM task_session_messages WHERE id IN ('one', 'two', 'three')"),
        0
    );
    assert_eq!(Some(file.revision().await), before.after(2));
    let gone = Mutation::DeleteMessage { message: MessageId::new("first").unwrap() };
    let written = file.apply(vec![gone, create("next", 20_000)]).await.unwrap();
    assert_eq!(Some(written.receipts[0].base), before.after(2));
    assert_eq!(file.count("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_written_can_be_read() {
    let file = InFile::new(|db| db.pragma_update(None, "query_only", true).unwrap()).await;
    let before = file.revision().await;
    for _ in 0..2 {
        let error = file.apply(vec![create("m", 10)]).await.unwrap_err();
        assert!(matches!(error.0, WriteErrorKind::ReadOnly), "{error:?}");
        assert!(!whole(&error).contains(CANARY));
        assert_eq!(file.revision().await, before);
    }
}

/// A trigger or a constraint of another program that refuses a row says nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_program_refuses_is_an_error_without_content() {
    let file = InFile::new(|_| ()).await;
    let refusing = format!(
        "CREATE TRIGGER refuse AFTER INSERT ON task_session_messages WHEN NEW.id LIKE 'bad%' BEGIN SELECT RAISE(ABORT, 'no: {CANARY}'); END;"
    );
    file.past().execute_batch(&refusing).unwrap();
    let before = file.revision().await;
    let error = file.apply(vec![create("good", 10), create("bad", 10)]).await.unwrap_err();
    assert!(matches!(error.0, WriteErrorKind::Storage(_)), "{error:?}");
    assert!(!whole(&error).contains(CANARY), "{}", whole(&error));
    assert_eq!(file.revision().await, before);
    assert!(file.apply(vec![create("good", 10)]).await.unwrap().receipts[0].is_step());
}

/// A program that does not heed foreign keys removes a session and leaves its rows: nobody sees them, and the next opening tells of them (case A13).
#[tokio::test(flavor = "multi_thread")]
async fn rows_without_a_session_are_not_seen_and_told_of() {
    let file = InFile::new(|_| ()).await;
    file.apply(vec![create("m", 10)]).await.unwrap();
    file.store.create_session(new_session("kept")).await.unwrap();
    assert_eq!(file.store.upgrade().orphaned_sessions, 0);
    file.past().execute("DELETE FROM task_sessions WHERE id = 'a'", []).unwrap();
    assert_eq!(file.count("SELECT count(*) FROM task_session_messages"), 1);
    let query = PageQuery::of(session("a"));
    let reads = [
        file.store.messages(&query).await.map(drop).unwrap_err(),
        file.store.turns(&query).await.map(drop).unwrap_err(),
    ];
    assert!(reads.iter().all(|error| matches!(error.0, ReadErrorKind::UnknownSession)), "{reads:?}");
    assert_eq!(
        file.store.revisions(&[session("a"), session("kept")]).await.unwrap(),
        [None, Some(Revision::default())]
    );
    let error = file.apply(vec![create("n", 10)]).await.unwrap_err();
    assert!(matches!(error.0, WriteErrorKind::UnknownSession), "{error:?}");
    let opened = SqliteStore::open(&file.path(), SqliteOptions::default()).unwrap();
    assert_eq!(opened.upgrade().orphaned_sessions, 1);
}

/// Triggers that another program drops, changes or loses with a table are put back, and a new epoch begins (C35, C36).
#[tokio::test(flavor = "multi_thread")]
async fn damaged_triggers_are_put_back_and_a_new_epoch_begins() {
    let file = InFile::new(|_| ()).await;
    let rebuilt = "CREATE TABLE other AS SELECT * FROM task_session_messages; DROP TABLE task_session_messages;
        CREATE TABLE task_session_messages (id TEXT PRIMARY KEY, task_session_id TEXT NOT NULL REFERENCES task_sessions(id) ON DELETE CASCADE,
            task_id TEXT, turn_id TEXT NOT NULL, author_type TEXT NOT NULL DEFAULT 'user', author_id TEXT DEFAULT '', requests_input INTEGER DEFAULT 0,
            type TEXT NOT NULL DEFAULT 'message', prompt_seq INTEGER NOT NULL DEFAULT 0, created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL,
            metadata TEXT DEFAULT '{}', content TEXT NOT NULL);
        INSERT INTO task_session_messages SELECT id, task_session_id, task_id, turn_id, author_type, author_id, requests_input, type, prompt_seq,
            created_at, updated_at, metadata, content FROM other; DROP TABLE other";
    let again =
        "CREATE TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = 'conversation_source_turn_update';
        DROP TRIGGER conversation_source_turn_update";
    file.apply(vec![create("m", 10)]).await.unwrap();
    for (name, damage) in [
        ("one dropped", "DROP TRIGGER conversation_source_message_update"),
        ("another body", "DROP TRIGGER conversation_source_message_update; CREATE TRIGGER conversation_source_message_update
             AFTER UPDATE ON task_session_messages BEGIN SELECT 1; END"),
        ("the table rebuilt", rebuilt),
        ("another table beside", again),
    ] {
        let before = file.store.epoch().await.unwrap();
        assert_eq!(file.store.epoch().await.unwrap(), before, "{name}: nothing happened yet");
        file.past().execute_batch(damage).unwrap();
        let after = file.store.epoch().await.unwrap();
        assert_ne!(after, before, "{name}: the epoch goes on");
        let at = file.revision().await;
        file.past().execute_batch("UPDATE task_session_messages SET content = content || 'x'; UPDATE task_session_turns SET metadata = metadata || ' '").unwrap();
        assert_eq!(Some(file.revision().await), at.after(2), "{name}");
        assert_eq!(file.store.epoch().await.unwrap(), after, "{name}: one new epoch");
    }
    // Dropped and made anew as they were, between two looks: what was changed in between has no revision.
    let before = file.store.epoch().await.unwrap();
    let db = file.past();
    let sql: String = db
        .query_row(
            "SELECT sql FROM sqlite_schema WHERE name = 'conversation_source_turn_update'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    db.execute_batch(&format!("DROP TRIGGER conversation_source_turn_update; {sql};")).unwrap();
    assert_ne!(file.store.epoch().await.unwrap(), before);
    // The table that was rebuilt has lost its index of the order too; the next opening makes it.
    drop(SqliteStore::open(&file.path(), SqliteOptions::default()).unwrap());
    let before = file.store.epoch().await.unwrap();
    drop(SqliteStore::open(&file.path(), SqliteOptions::default()).unwrap());
    assert_eq!(file.store.epoch().await.unwrap(), before, "opening what is whole changes nothing");
}

#[tokio::test]
async fn what_is_not_changed_keeps_its_bytes() {
    let file = InFile::new(|_| {}).await;
    file.apply(vec![create("m", 4)]).await.unwrap();
    file.past()
        .execute("UPDATE task_session_messages SET content = x'61ff62', created_at = '2460000.5'", [])
        .unwrap();
    let patch = MessagePatch { kind: Some("thinking".to_owned()), ..MessagePatch::default() };
    let update = Mutation::UpdateMessage { message: MessageId::new("m").unwrap(), patch };
    let written = file.apply(vec![update]).await.unwrap();
    let Coverage::Complete(operations) = &written.receipts[0].coverage else { panic!("{written:?}") };
    let Operation::MessageUpsert { record, .. } = &operations[0] else { panic!("{written:?}") };
    assert_eq!((record.content.as_str(), record.kind.as_str()), ("a\u{fffd}b", "thinking"));
    // A time in a spelling of its own has the key that the database makes of it.
    assert_eq!(record.order_time.as_ref().map(OrderTime::as_str), Some("2023-02-25 00:00:00.000000"));
    let whole = "SELECT count(*) FROM task_session_messages WHERE content = x'61ff62' AND type = 'thinking'";
    assert_eq!(file.count(whole), 1);
}

#[tokio::test]
async fn a_trigger_of_another_program_that_changes_the_row_makes_the_receipt_a_reset() {
    let file = InFile::new(|_| {}).await;
    file.apply(vec![create("m", 4)]).await.unwrap();
    file.past()
        .execute_batch(
            "CREATE TRIGGER shout AFTER UPDATE OF content ON task_session_messages WHEN NEW.content <> upper(NEW.content)
             BEGIN UPDATE task_session_messages SET content = upper(content) WHERE id = NEW.id; END",
        )
        .unwrap();
    let patch = MessagePatch { content: Some("quiet".to_owned()), ..MessagePatch::default() };
    let update = Mutation::UpdateMessage { message: MessageId::new("m").unwrap(), patch };
    let written = file.apply(vec![update]).await.unwrap();
    assert_eq!(written.receipts[0].coverage, Coverage::Reset);
    assert_eq!(written.receipts[0].revision, file.revision().await);
    assert_eq!(file.count("SELECT count(*) FROM task_session_messages WHERE content = 'QUIET'"), 1);
}

#[tokio::test]
async fn a_batch_that_is_refused_halfway_takes_nothing_with_it() {
    let file = InFile::new(|_| {}).await;
    let gone = Mutation::DeleteMessage { message: MessageId::new("gone").unwrap() };
    let (refused, good) =
        tokio::join!(file.apply(vec![create("half", 4), gone]), file.apply(vec![create("whole", 4)]));
    assert!(matches!(refused.unwrap_err().0, WriteErrorKind::Refused { index: 1, .. }));
    assert_eq!(good.unwrap().receipts[0].revision, file.revision().await);
    assert_eq!(file.count("SELECT count(*) FROM task_session_messages"), 1);
}
