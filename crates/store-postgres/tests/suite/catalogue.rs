//! Writes that triggers cannot see are guarded, or found in the catalogue: the triggers are put back, and a new epoch begins (C35, C36).

use headwater_store::ConversationSource;
use headwater_store_postgres::PostgresStore;
use headwater_testkit::postgres::Cluster;
use tokio_postgres::Client;

use crate::scene::{PATIENT, apply, connect, create, number, open, revision};

/// What another program may do to the triggers.
const DAMAGES: [(&str, &str); 10] = [
    ("switched off", "ALTER TABLE task_session_messages DISABLE TRIGGER USER"),
    ("switched off and on again", "ALTER TABLE task_session_turns DISABLE TRIGGER USER; ALTER TABLE task_session_turns ENABLE TRIGGER USER"),
    ("one dropped", "DROP TRIGGER headwater_messages_updated ON task_session_messages"),
    ("all dropped", "DROP FUNCTION headwater_rows_inserted, headwater_rows_deleted, headwater_rows_truncated, headwater_messages_updated, headwater_turns_updated CASCADE"),
    ("the function of all dropped", "DROP FUNCTION headwater_raise_revisions"),
    ("renamed", "ALTER TRIGGER headwater_turns_deleted ON task_session_turns RENAME TO headwater_other"),
    (
        "a function with another body",
        "CREATE OR REPLACE FUNCTION headwater_messages_updated() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
    ),
    (
        "made anew by hand",
        "DROP TRIGGER headwater_messages_inserted ON task_session_messages;
         CREATE TRIGGER headwater_messages_inserted AFTER INSERT ON task_session_messages REFERENCING NEW TABLE AS new_rows
             FOR EACH STATEMENT EXECUTE FUNCTION headwater_rows_inserted()",
    ),
    (
        "the host's own beside them",
        "CREATE FUNCTION conversation_source_message_revision() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
             UPDATE conversation_session_revisions SET revision = revision + 1 WHERE session_id = NEW.task_session_id; RETURN NULL; END $$;
         CREATE TRIGGER conversation_source_message_revision_trigger AFTER UPDATE ON task_session_messages
             FOR EACH ROW EXECUTE FUNCTION conversation_source_message_revision()",
    ),
    (
        "the table rebuilt",
        "ALTER TABLE task_session_messages RENAME TO old; CREATE TABLE task_session_messages (LIKE old INCLUDING ALL);
         ALTER TABLE task_session_messages ADD FOREIGN KEY (turn_id) REFERENCES task_session_turns(id) ON DELETE CASCADE,
             ADD FOREIGN KEY (task_session_id) REFERENCES task_sessions(id) ON DELETE CASCADE;
         INSERT INTO task_session_messages SELECT * FROM old; DROP TABLE old",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn damaged_triggers_are_put_back_and_a_new_epoch_begins() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let (store, plain) = (open(&address, &["a"]).await, connect(&address).await);
    let other = PostgresStore::open(&address, PATIENT).await.unwrap();
    apply(&store, "a", vec![create("m", "a")]).await.unwrap();
    for (name, damage) in DAMAGES {
        let before = [store.epoch().await.unwrap(), other.epoch().await.unwrap()];
        assert_eq!(
            before,
            [store.epoch().await.unwrap(), other.epoch().await.unwrap()],
            "{name}: nothing happened yet"
        );
        plain.batch_execute(damage).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let after = [store.epoch().await.unwrap(), other.epoch().await.unwrap()];
        assert!(before.iter().all(|epoch| !after.contains(epoch)), "{name}: the epoch goes on");
        ensure_counting(name, &store, &plain).await;
        assert_eq!(
            after,
            [store.epoch().await.unwrap(), other.epoch().await.unwrap()],
            "{name}: one new epoch"
        );
    }
    let before = store.epoch().await.unwrap();
    plain.batch_execute(DAMAGES[0].1).await.unwrap();
    let opened = PostgresStore::open(&address, PATIENT).await.unwrap();
    ensure_counting("found when it is opened", &opened, &plain).await;
    assert_ne!(store.epoch().await.unwrap(), before, "another process put them back");
    let before = store.epoch().await.unwrap();
    drop(PostgresStore::open(&address, PATIENT).await.unwrap());
    assert_eq!(store.epoch().await.unwrap(), before, "opening what is whole changes nothing");
}

/// Each change of each kind raises the revision, once.
async fn ensure_counting(name: &str, store: &PostgresStore, plain: &Client) {
    let added = "INSERT INTO task_session_messages (id, task_session_id, turn_id, content, created_at, updated_at) VALUES ('n', 'a', 'a', '', now(), now())";
    for sql in [
        added,
        "UPDATE task_session_messages SET content = content || 'x'",
        "DELETE FROM task_session_messages WHERE id = 'n'",
        "UPDATE task_session_turns SET route_generation = route_generation + 1",
    ] {
        let before = revision(store, "a").await;
        plain.batch_execute(sql).await.unwrap();
        assert_eq!(Some(revision(store, "a").await), before.after(1), "{name}: {sql}");
    }
    let receipts = apply(store, "a", vec![crate::scene::new_turn_named(name)]).await.unwrap();
    assert!(receipts[0].is_step() && receipts[0].operations().is_some(), "{name}: {receipts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_replicas_and_truncation_raise_revisions() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let (store, plain) = (open(&address, &["a", "b"]).await, connect(&address).await);
    apply(&store, "a", vec![create("m", "a")]).await.unwrap();
    for (sql, moves_b) in [
        // COPY from rows that the statement itself makes.
        ("COPY task_session_messages (id, task_session_id, turn_id, content, created_at, updated_at) FROM PROGRAM
             'for n in 1 2 3; do echo \"c$n,a,a,text,2026-01-01,2026-01-01\"; done' WITH (FORMAT csv)", false),
        ("SET session_replication_role = replica; UPDATE task_session_messages SET content = 'by a replica' WHERE id = 'm'", false),
        ("SET session_replication_role = replica; DELETE FROM task_session_messages WHERE id = 'm'", false),
        ("SET session_replication_role = replica; INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
             VALUES ('t', 'a', 'task', now(), now(), now())", false),
        ("TRUNCATE task_session_messages", true),
        ("SET session_replication_role = replica; TRUNCATE task_session_messages", true),
        ("TRUNCATE task_session_turns CASCADE", true),
    ] {
        let before = [revision(&store, "a").await, revision(&store, "b").await];
        plain.batch_execute(&format!("{sql}; RESET session_replication_role")).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let after = [revision(&store, "a").await, revision(&store, "b").await];
        assert_eq!([after[0] > before[0], after[1] > before[1]], [true, moves_b], "{sql}");
    }
    plain.batch_execute("TRUNCATE task_sessions CASCADE").await.unwrap();
    for table in ["task_session_messages", "task_session_turns", "conversation_session_revisions"] {
        assert_eq!(number(&plain, &format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
}
