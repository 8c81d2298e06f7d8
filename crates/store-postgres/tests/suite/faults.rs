//! Lost connections, a server that goes, and a commit that fails: a true receipt or a typed error, nothing by halves, and the next call works.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headwater_model::conversation::Receipt;
use headwater_store::conformance::{Choices, whole};
use headwater_store::{ConversationSource, Mutation, PageQuery, ReadErrorKind, Retry, WriteErrorKind};
use headwater_store_postgres::{OpenError, PostgresOptions, PostgresStore};
use headwater_testkit::postgres::{Cluster, Cut, Proxy};

use crate::scene::{
    PATIENT, append, apply, connect, create, messages, new_turn, number, open, revision, session,
    until_waiting,
};

/// A batch whose parts are all idempotent.
fn batch(name: &str) -> Vec<Mutation> {
    let turn = format!("turn-{name}");
    vec![
        Mutation::CreateTurn(new_turn(&turn)),
        create(&format!("one-{name}"), &turn),
        create(&format!("two-{name}"), &turn),
        Mutation::CompleteTurn { turn: new_turn(&turn).id, completed_at: None },
    ]
}

/// Cuts the connection before and after each request in turn: those of the transaction, of the statements, of the commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_anywhere_leaves_all_or_nothing() {
    let cluster = Cluster::start();
    let direct = cluster.create_database();
    let setup = open(&direct, &["a"]).await;
    let plain = connect(&direct).await;
    let proxy = Proxy::start(&cluster);
    let store = PostgresStore::open(&proxy.address(&direct), PATIENT).await.unwrap();
    let mut unknown = BTreeMap::from([("before", Vec::new()), ("after", Vec::new())]);
    for (when, cut) in [("before", Cut::Before as fn(usize) -> Cut), ("after", Cut::After)] {
        for at in 0.. {
            let name = format!("{when}-{at}");
            let base = revision(&setup, "a").await;
            proxy.cut(Some(cut(at)));
            let written = apply(&store, "a", batch(&name)).await;
            let reached = proxy.requests() > at;
            proxy.cut(None);
            let of_batch = format!(
                "SELECT count(*) FROM task_session_messages WHERE turn_id = 'turn-{name}' AND metadata LIKE '%complete%'"
            );
            let rows = number(&plain, &of_batch).await;
            let now = revision(&setup, "a").await;
            match written.map_err(|error| error.0) {
                Ok(receipts) => {
                    assert_eq!((receipts[0].base, receipts[0].revision, rows), (base, now, 2), "{name}");
                    assert_eq!(receipts[0].operations().map(<[_]>::len), Some(6), "{name}");
                }
                Err(WriteErrorKind::Unknown(_)) => {
                    assert!(
                        (rows == 2 && now > base) || (rows == 0 && now == base),
                        "{name}: {rows} rows, {base} to {now}"
                    );
                    unknown.get_mut(when).unwrap().push(rows);
                    let again = apply(&store, "a", batch(&name)).await.unwrap();
                    assert_eq!(again[0].is_step(), rows == 0, "{name}: sent again");
                    assert_eq!(number(&plain, &of_batch).await, 2, "{name}: sent again");
                }
                Err(error) => panic!("{name}: {error:?}"),
            }
            if !reached {
                assert!(at > 12, "{when}: only {at} requests");
                break;
            }
        }
        for at in 0.. {
            proxy.cut(Some(cut(at)));
            let page = store.messages(&PageQuery::of(session("a"))).await.unwrap();
            assert_eq!(page.revision, revision(&setup, "a").await);
            if proxy.requests() <= at {
                break;
            }
        }
        proxy.cut(None);
    }
    assert_eq!(
        unknown,
        BTreeMap::from([("before", vec![0]), ("after", vec![2])]),
        "only the commit is in doubt"
    );
}

/// A commit that PostgreSQL refuses yields no receipt (case B09), and no row.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_has_no_receipt() {
    const CANARY: &str = "canary-7f3a";
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let store = open(&address, &["a"]).await;
    let plain = connect(&address).await;
    let trigger = format!(
        "CREATE FUNCTION refuse() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'no: {CANARY} %', NEW.content USING DETAIL = NEW.content, HINT = NEW.content; END $$;
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON task_session_messages DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW WHEN (NEW.id LIKE 'bad%') EXECUTE FUNCTION refuse();
         ALTER TABLE task_session_messages ADD CONSTRAINT forbid CHECK (content <> '{CANARY}');"
    );
    plain.batch_execute(&trigger).await.unwrap();
    let before = revision(&store, "a").await;
    let error = apply(&store, "a", vec![create("good", "a"), create("bad", "a")]).await.unwrap_err();
    assert!(matches!(error.0, WriteErrorKind::Storage(_)), "{error:?}");
    assert!(!whole(&error).contains(CANARY), "{}", whole(&error));
    assert_eq!(revision(&store, "a").await, before);
    assert_eq!(messages(&store, "a").await, []);
    // A constraint whose error quotes the row.
    let Mutation::CreateMessage(mut new) = create("m", "a") else { unreachable!() };
    new.content = CANARY.to_owned();
    let error = apply(&store, "a", vec![Mutation::CreateMessage(new)]).await.unwrap_err();
    assert!(matches!(error.0, WriteErrorKind::Storage(_)), "{error:?}");
    assert!(!whole(&error).contains(CANARY), "{}", whole(&error));
    let receipts = apply(&store, "a", vec![create("good", "a")]).await.unwrap();
    assert_eq!(receipts[0].base, before);
}

/// Server processes are ended at random under eight writers, each of which sends its batch until it has an answer.
#[tokio::test(flavor = "multi_thread")]
async fn connections_killed_at_random_leave_true_receipts() {
    const WRITERS: usize = 8;
    const BATCHES: usize = 20;
    const KILLS: i64 = 60;
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let store = open(&address, &["a", "b"]).await;
    let bases = [revision(&store, "a").await, revision(&store, "b").await];
    let choices = Choices::begin();
    let ended = AtomicBool::new(false);
    let killing = async {
        let (mut choices, killer) = (choices.of_part(WRITERS), connect(&address).await);
        let kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
            WHERE application_name = 'headwater' AND datname = current_database() ORDER BY random() LIMIT 1) AS victim";
        let mut killed = 0;
        // Not for ever: who is killed again and again makes no progress.
        while killed < KILLS && !ended.load(Ordering::Relaxed) {
            killed += number(&killer, kill).await;
            tokio::time::sleep(Duration::from_micros(choices.below(20_000) as u64)).await;
        }
        killed
    };
    let (store, choices) = (&store, &choices);
    let writing = async {
        let writers = (0..WRITERS).map(async |writer| {
            let mut choices = choices.of_part(writer);
            let (mut receipts, mut unknown): (Vec<Receipt>, usize) = (Vec::new(), 0);
            for number in 0..BATCHES {
                let (id, name) = (choices.pick(&["a", "b"]), format!("{writer}-{number}"));
                receipts.extend(loop {
                    match apply(store, id, batch(&name)).await {
                        Ok(receipts) => break receipts,
                        Err(error) => {
                            assert_eq!(error.retry(), Retry::Later, "{error:?}");
                            unknown += usize::from(matches!(error.0, WriteErrorKind::Unknown(_)));
                        }
                    }
                });
            }
            (receipts, unknown)
        });
        let written = futures_util::future::join_all(writers).await;
        ended.store(true, Ordering::Relaxed);
        written
    };
    let (written, killed) = tokio::join!(writing, killing);
    let unknown: usize = written.iter().map(|(_, unknown)| unknown).sum();
    let receipts: Vec<&Receipt> = written.iter().flat_map(|(receipts, _)| receipts).collect();
    assert_eq!(receipts.len(), WRITERS * BATCHES);
    assert!(killed > 20, "only {killed} were killed");
    let mut gaps = 0;
    for (id, base) in ["a", "b"].into_iter().zip(bases) {
        let mut steps: Vec<&&Receipt> =
            receipts.iter().filter(|receipt| receipt.session.as_str() == id && receipt.is_step()).collect();
        steps.sort_by_key(|receipt| receipt.base);
        let mut at = base;
        for receipt in steps {
            assert!(receipt.base >= at, "{receipt:?} overlaps the receipt before it");
            gaps += usize::from(receipt.base != at);
            at = receipt.revision;
        }
        let now = revision(store, id).await;
        assert!(now >= at, "the receipts of {id} end at {at}, it is at {now}");
        gaps += usize::from(now != at);
    }
    assert!(gaps <= unknown, "{gaps} gaps, {unknown} commits in doubt");
    let plain = connect(&address).await;
    let total = i64::try_from(WRITERS * BATCHES).unwrap();
    assert_eq!(
        number(&plain, "SELECT count(*) FROM task_session_messages WHERE metadata LIKE '%complete%'").await,
        2 * total
    );
    assert_eq!(
        number(&plain, "SELECT count(*) FROM task_session_turns WHERE completed_at IS NOT NULL").await,
        total
    );
}

/// The server crashes while a transaction waits in it, and comes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_in_a_transaction_is_told_of_and_used_again() {
    let mut cluster = Cluster::alone();
    let address = cluster.create_database();
    let store = open(&address, &["a"]).await;
    apply(&store, "a", vec![create("m", "a")]).await.unwrap();
    let before = revision(&store, "a").await;
    let [mut holder, asker] = [connect(&address).await, connect(&address).await];
    let holding = holder.transaction().await.unwrap();
    holding.execute("SELECT 1 FROM task_session_messages WHERE id = 'm' FOR UPDATE", &[]).await.unwrap();
    // The tests' clusters write the log late.
    asker.batch_execute("CHECKPOINT").await.unwrap();
    let crash = async {
        until_waiting(&asker, 1).await;
        tokio::task::spawn_blocking(move || {
            cluster.crash_and_restart();
            cluster
        })
        .await
        .unwrap()
    };
    let (written, _cluster) = tokio::join!(apply(&store, "a", vec![append("m", 4)]), crash);
    // Back in time for the last attempt, or not.
    let moved = match written {
        Ok(receipts) => receipts[0].is_step(),
        Err(error) => {
            assert!(matches!(error.0, WriteErrorKind::Busy(_)), "{error:?}");
            false
        }
    };
    let after = revision(&store, "a").await;
    assert_eq!(after > before, moved);
    let offset = if moved { 8 } else { 4 };
    let receipts = apply(&store, "a", vec![append("m", offset)]).await.unwrap();
    assert_eq!(receipts[0].base, after);
}

/// All connections are taken: the call says so, and the next one works.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_used_up_is_an_error_that_passes() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    drop(open(&address, &["a"]).await);
    let options = PostgresOptions { connections: 1, wait: Duration::from_millis(50), ..PATIENT };
    let store = PostgresStore::open(&address, options).await.unwrap();
    let [mut holder, asker] = [connect(&address).await, connect(&address).await];
    let holding = holder.transaction().await.unwrap();
    holding.execute("SELECT 1 FROM conversation_session_revisions FOR UPDATE", &[]).await.unwrap();
    let second = async {
        until_waiting(&asker, 1).await;
        let write = apply(&store, "a", vec![create("second", "a")]).await.unwrap_err();
        assert!(matches!(write.0, WriteErrorKind::Busy(_)), "{write:?}");
        assert_eq!(write.retry(), Retry::Later);
        let read = store.revision(&session("a")).await.unwrap_err();
        assert!(matches!(read.0, ReadErrorKind::Unavailable(_)), "{read:?}");
        holding.commit().await.unwrap();
    };
    let (first, ()) = tokio::join!(apply(&store, "a", vec![create("first", "a")]), second);
    assert!(first.unwrap()[0].is_step());
    assert!(apply(&store, "a", vec![create("second", "a")]).await.unwrap()[0].is_step());
}

/// An address that asks for encryption is refused: nothing is sent in the clear in its place.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_asks_for_encryption_is_refused() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    for (mode, is_known) in [("require", true), ("verify-full", false), ("verify-ca", false)] {
        let error = PostgresStore::open(&format!("{address} sslmode={mode}"), PATIENT).await.unwrap_err();
        let refused = if is_known {
            matches!(error, OpenError::Connect(_))
        } else {
            matches!(error, OpenError::Options(_))
        };
        assert!(refused, "{mode}: {error:?}");
    }
    drop(PostgresStore::open(&format!("{address} sslmode=prefer"), PATIENT).await.unwrap());
}

/// A database that takes no writes says so, is read, and takes them again.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_written_can_be_read() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let (store, plain) = (open(&address, &["a"]).await, connect(&address).await);
    let before = revision(&store, "a").await;
    // Counts for new connections, so those that are there are ended.
    let only = |read: &str| {
        format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {read}', current_database()); END $$;
             SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'headwater' AND datname = current_database()"
        )
    };
    plain.batch_execute(&only("on")).await.unwrap();
    for _ in 0..2 {
        let error = apply(&store, "a", vec![create("m", "a")]).await.unwrap_err();
        assert!(matches!(error.0, WriteErrorKind::ReadOnly), "{error:?}");
        assert_eq!(revision(&store, "a").await, before);
        store.epoch().await.unwrap();
    }
    plain.batch_execute(&only("off")).await.unwrap();
    assert_eq!(apply(&store, "a", vec![create("m", "a")]).await.unwrap()[0].base, before);
}
