//! Databases of a host with a journal become databases of the store: whole or not at all, and only once (C29, cases H01, H02).

use headwater_store_postgres::{OpenError, PostgresStore};
use headwater_testkit::postgres::Cluster;
use tokio_postgres::Client;

use crate::scene::{PATIENT, connect, number};

const HOST: &str = include_str!("../host/tables.sql");
const JOURNAL: &str = include_str!("../host/journal.sql");

/// What the host's own clean-up drops; it leaves three functions behind.
const CLEANED: &str = "
    DROP TRIGGER conversation_message_journal_trigger ON task_session_messages;
    DROP TRIGGER conversation_turn_journal_trigger ON task_session_turns;
    DROP TRIGGER conversation_session_delete_trigger ON task_sessions;
    DROP FUNCTION conversation_message_journal(), conversation_turn_journal(), conversation_session_delete_journal();";
const TABLES_DROPPED: &str = "
    DROP TABLE conversation_session_events, conversation_message_versions, conversation_turn_versions, conversation_session_streams,
        conversation_journal_meta;";

/// The host's own revisions, row by row.
const OTHER_REVISIONS: &str = "
    CREATE TABLE conversation_session_revisions (session_id TEXT PRIMARY KEY, revision BIGINT NOT NULL DEFAULT 0 CHECK (revision >= 0),
        FOREIGN KEY (session_id) REFERENCES task_sessions(id) ON DELETE CASCADE);
    INSERT INTO conversation_session_revisions VALUES ('s', 41);
    CREATE FUNCTION conversation_source_bump_revision(session TEXT) RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN
        UPDATE conversation_session_revisions SET revision = revision + 1 WHERE session_id = session; END $$;
    CREATE FUNCTION conversation_source_message_revision() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        PERFORM conversation_source_bump_revision(NEW.task_session_id); RETURN NULL; END $$;
    CREATE FUNCTION conversation_source_turn_revision() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        PERFORM conversation_source_bump_revision(NEW.task_session_id); RETURN NULL; END $$;
    CREATE TRIGGER conversation_source_message_revision_trigger AFTER INSERT OR UPDATE OR DELETE ON task_session_messages
        FOR EACH ROW EXECUTE FUNCTION conversation_source_message_revision();
    CREATE TRIGGER conversation_source_turn_revision_trigger AFTER INSERT OR UPDATE OR DELETE ON task_session_turns
        FOR EACH ROW EXECUTE FUNCTION conversation_source_turn_revision();";

/// The shapes in which a database may come.
fn shapes() -> [(&'static str, String); 9] {
    let both = format!("{HOST}{JOURNAL}");
    [
        ("host alone", HOST.to_owned()),
        ("journal complete", both.clone()),
        (
            "journal half filled",
            format!(
                "{both} DELETE FROM conversation_journal_meta WHERE key = 'backfill.complete'; DELETE FROM conversation_turn_versions;"
            ),
        ),
        ("tables and helpers alone", format!("{both}{CLEANED}")),
        ("helpers alone", format!("{both}{CLEANED}{TABLES_DROPPED}")),
        ("triggers and functions alone", format!("{both}{TABLES_DROPPED}")),
        (
            "some tables are gone",
            format!("{both} DROP TABLE conversation_session_events, conversation_journal_meta;"),
        ),
        ("both systems", format!("{both}{OTHER_REVISIONS}")),
        ("migrated by the host", format!("{HOST}{OTHER_REVISIONS}")),
    ]
}

/// Stops before the statement of a transaction that `stop_at` names: by an error, or with the connection. Statements of the history of migrations itself do not count.
const STOPPING: &str = "
    CREATE TABLE stop_at (number BIGINT, how TEXT); INSERT INTO stop_at VALUES (0, '');
    CREATE FUNCTION stop() RETURNS event_trigger LANGUAGE plpgsql AS $$
    DECLARE reached BIGINT := 1 + coalesce(nullif(current_setting('stop.reached', true), ''), '0')::bigint;
    BEGIN
        IF current_query() LIKE '%EXISTS refinery_schema_history%' THEN RETURN; END IF;
        PERFORM set_config('stop.reached', reached::text, true);
        IF reached = (SELECT number FROM stop_at) THEN
            IF (SELECT how FROM stop_at) = 'error' THEN RAISE EXCEPTION 'stopped'; END IF;
            PERFORM pg_terminate_backend(pg_backend_pid());
        END IF;
    END $$;
    CREATE EVENT TRIGGER stop ON ddl_command_start EXECUTE FUNCTION stop();";

const SOURCES: [&str; 6] = [
    "tasks",
    "task_sessions",
    "task_session_turns",
    "task_session_messages",
    "task_session_prompt_seq",
    "kandev_meta",
];

struct Host {
    plain: Client,
    address: String,
    /// The columns of each table, as the host made them.
    columns: Vec<(&'static str, String)>,
}

impl Host {
    async fn new(cluster: &Cluster, shape: &str) -> Self {
        let address = cluster.create_database();
        let plain = connect(&address).await;
        plain.batch_execute(shape).await.unwrap();
        let mut columns = Vec::new();
        for table in SOURCES {
            let sql = "SELECT string_agg(quote_ident(column_name), ', ' ORDER BY column_name) FROM information_schema.columns WHERE table_name = $1";
            let named: Option<String> = plain.query_one(sql, &[&table]).await.unwrap().get(0);
            columns.extend(named.map(|named| (table, named)));
        }
        Self { plain, address, columns }
    }

    /// Every row of the source tables as PostgreSQL writes its bytes.
    async fn source(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for (table, columns) in &self.columns {
            let sql = format!("SELECT ROW({columns})::text FROM {table} ORDER BY 1");
            rows.extend(
                self.plain
                    .query(&sql, &[])
                    .await
                    .unwrap()
                    .iter()
                    .map(|row| format!("{table} {}", row.get::<_, String>(0))),
            );
        }
        rows
    }

    /// What there is of the journal and of the host's own revisions.
    async fn legacy(&self) -> Vec<String> {
        let sql = "SELECT 'table ' || relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'conversation\\_%' AND relname <> 'conversation_session_revisions'
            UNION ALL SELECT 'function ' || oid::regprocedure FROM pg_proc WHERE proname LIKE 'conversation\\_%'
            UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgname LIKE 'conversation\\_%' ORDER BY 1";
        self.plain.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    async fn open(&self) -> Result<PostgresStore, OpenError> {
        PostgresStore::open(&self.address, PATIENT).await
    }

    /// Brought up to date, with the rows as they were, and each change counted once.
    async fn ensure_upgraded(&self, name: &str, before: &[String]) {
        assert_eq!(self.legacy().await, Vec::<String>::new(), "{name}");
        assert_eq!(self.source().await, before, "{name}");
        let revision = "SELECT coalesce((SELECT revision FROM conversation_session_revisions WHERE session_id = 's'), 0)";
        for sql in [
            "UPDATE task_session_messages SET content = content || 'x' WHERE id = 'm1'",
            "UPDATE task_session_messages SET content = left(content, -1) WHERE id = 'm1'",
            "UPDATE task_session_turns SET metadata = metadata || ' ' WHERE id = 't'",
            "UPDATE task_session_turns SET metadata = rtrim(metadata) WHERE id = 't'",
        ] {
            let at = number(&self.plain, revision).await;
            self.plain.batch_execute(sql).await.unwrap();
            assert_eq!(number(&self.plain, revision).await, at + 1, "{name}: {sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_of_a_hosts_database_is_brought_up_to_date_once() {
    let cluster = Cluster::start();
    for (name, shape) in shapes() {
        let host = Host::new(&cluster, &shape).await;
        let before = host.source().await;
        assert!(before.len() > 5, "{name}");
        for time in ["once", "again"] {
            drop(host.open().await.unwrap_or_else(|error| panic!("{name}, {time}: {error:?}")));
            host.ensure_upgraded(&format!("{name}, {time}"), &before).await;
        }
    }
}

/// Stops before each statement in turn by an error, and by losing the connection however often it is tried.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_stops_anywhere_leaves_the_database_as_it_was() {
    let cluster = Cluster::start();
    // A lost connection is tried again each time, so only every fifth statement loses it.
    for (told, how, step, least) in [("both systems", "error", 1, 40), ("journal complete", "lost", 5, 8)] {
        for (name, shape) in shapes().into_iter().filter(|(name, _)| *name == told) {
            let name = format!("{name}, {how}");
            let host = Host::new(&cluster, &format!("{shape}{STOPPING}")).await;
            let (before, legacy) = (host.source().await, host.legacy().await);
            let tables = "SELECT count(*) FROM pg_class WHERE relname = 'workspaces'";
            let (mut stops, mut at, mut migrated) = (0, 1_i64, 0);
            loop {
                host.plain.execute("UPDATE stop_at SET number = $1, how = $2", &[&at, &how]).await.unwrap();
                let Err(error) = host.open().await else { break };
                match how {
                    "error" => assert!(matches!(error, OpenError::Statement(_)), "{name} {at}: {error:?}"),
                    _ => assert!(matches!(error, OpenError::Connect(_)), "{name} {at}: {error:?}"),
                }
                assert_eq!(host.legacy().await, legacy, "{name}: stopped at {at}");
                assert_eq!(host.source().await, before, "{name}: stopped at {at}");
                // Tables that are missing come in a transaction of their own, before; then the other one is stopped from its start.
                let now = number(&host.plain, tables).await;
                at = if now > migrated { 1 } else { at + step };
                (migrated, stops) = (now, stops + 1);
            }
            assert!(stops > least, "{name}: only {stops} statements");
            host.ensure_upgraded(&name, &before).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_a_newer_program_is_refused() {
    let cluster = Cluster::start();
    let host = Host::new(&cluster, HOST).await;
    drop(host.open().await.unwrap());
    let newer =
        "INSERT INTO refinery_schema_history VALUES (999, 'from_the_future', '2027-01-01T00:00:00Z', '1')";
    host.plain.batch_execute(newer).await.unwrap();
    let error = host.open().await.unwrap_err();
    assert!(matches!(error, OpenError::Migration(_)), "{error:?}");
    host.plain.batch_execute("DELETE FROM refinery_schema_history WHERE version = 999").await.unwrap();
    drop(host.open().await.unwrap());
}
