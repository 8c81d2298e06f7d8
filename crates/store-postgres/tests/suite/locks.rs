//! Who waits for whom: locks are taken in one order, and whoever gives way tries again.

use headwater_model::conversation::Receipt;
use headwater_store::{BadMutation, ConversationWriter, WriteErrorKind};
use headwater_testkit::postgres::Cluster;
use tokio_postgres::Client;

use crate::scene::{
    append, apply, connect, create, messages, move_to, new_session, open, revision, until_waiting,
};

const SECOND_IS_FREE: &str =
    "SELECT 1 FROM conversation_session_revisions WHERE session_id = 'b' FOR UPDATE NOWAIT";

/// While the lesser session's revision is locked, whoever needs both holds none. Held for each way a row can go, so that neither "old, then
/// new" nor "new, then old" nor "as they are named" passes (C3, C32).
#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_locked_in_the_order_of_ids() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let store = open(&address, &["b", "a"]).await;
    for (from, to) in [("a", "b"), ("b", "a")] {
        for by_store in [true, false] {
            let id = format!("m-{from}-{by_store}");
            apply(&store, from, vec![create(&id, from)]).await.unwrap();
            let [mut holder, mover, asker] =
                [connect(&address).await, connect(&address).await, connect(&address).await];
            let holding = holder.transaction().await.unwrap();
            holding
                .execute(
                    "SELECT 1 FROM conversation_session_revisions WHERE session_id = 'a' FOR UPDATE",
                    &[],
                )
                .await
                .unwrap();
            let moving = async {
                if by_store {
                    apply(&store, from, vec![move_to(&id, to)]).await.unwrap();
                } else {
                    let sql =
                        "UPDATE task_session_messages SET task_session_id = $1, turn_id = $1 WHERE id = $2";
                    mover.execute(sql, &[&to, &id]).await.unwrap();
                }
            };
            let looking = async {
                until_waiting(&asker, 1).await;
                let free = asker.query_one(SECOND_IS_FREE, &[]).await;
                assert!(
                    free.is_ok(),
                    "{from} to {to}, by the store: {by_store}: holds `b` while it waits for `a`"
                );
                holding.commit().await.unwrap();
            };
            tokio::join!(moving, looking);
        }
    }
}

/// Statements that move rows between the same sessions in both directions never deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn moves_past_the_store_never_deadlock() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let store = open(&address, &["a", "b"]).await;
    apply(&store, "a", (0..8).map(|number| create(&format!("m{number}"), "a")).collect()).await.unwrap();
    let before = [revision(&store, "a").await.get(), revision(&store, "b").await.get()];
    let movers = (0..8).map(async |number: usize| {
        let mover = connect(&address).await;
        for round in 0..40 {
            let to = if (number + round).is_multiple_of(2) { "a" } else { "b" };
            let sql = "UPDATE task_session_messages SET task_session_id = $1, turn_id = $1, metadata = $2 WHERE id = $3";
            mover.execute(sql, &[&to, &format!("{{\"n\":{round}}}"), &format!("m{number}")]).await.unwrap();
        }
    });
    futures_util::future::join_all(movers).await;
    // Four of eight stand in `a` at first and their first move is none; all others are 39 or 40 real moves, each a step of both.
    let after = [revision(&store, "a").await.get(), revision(&store, "b").await.get()];
    assert_eq!([after[0] - before[0], after[1] - before[1]], [320, 316]);
}

/// Row by row, the counter of a session would get a new version for each row (C32).
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_one_step_however_many_rows_it_changes() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let (store, plain) = (open(&address, &["a", "b"]).await, connect(&address).await);
    apply(&store, "a", (0..5).map(|number| create(&format!("m{number}"), "a")).collect()).await.unwrap();
    apply(&store, "b", (5..9).map(|number| create(&format!("m{number}"), "b")).collect()).await.unwrap();
    for sql in [
        "UPDATE task_session_messages SET content = content || 'x'",
        "INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
             SELECT 't-' || session || n, session, 'task', now(), now(), now() FROM unnest(ARRAY['a', 'b']) session, generate_series(1, 4) n",
        "UPDATE task_session_turns SET metadata = '{ }'",
        "DELETE FROM task_session_turns WHERE id LIKE 't-%'",
        "DELETE FROM task_session_messages",
    ] {
        let before = [revision(&store, "a").await, revision(&store, "b").await];
        plain.batch_execute(sql).await.unwrap();
        let after = [revision(&store, "a").await, revision(&store, "b").await];
        assert_eq!(after.map(Some), before.map(|before| before.after(1)), "{sql}");
    }
}

/// Makes the store the victim of a deadlock: `lock` in another program's transaction, then `write`, and while it waits, `meet`.
async fn provoke(
    address: &str,
    [lock, meet]: [&str; 2],
    write: impl Future<Output = Vec<Receipt>>,
) -> Vec<Receipt> {
    let mut other = connect(address).await;
    // It is in no hurry to find the deadlock, so the store's server process finds it, and the store is the one to give way.
    other.batch_execute("SET deadlock_timeout = '60s'").await.unwrap();
    let asker: Client = connect(address).await;
    let holding = other.transaction().await.unwrap();
    holding.batch_execute(lock).await.unwrap();
    let meeting = async {
        until_waiting(&asker, 1).await;
        holding.batch_execute(meet).await.unwrap();
        holding.commit().await.unwrap();
    };
    tokio::join!(write, meeting).0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_gives_way_in_a_deadlock_has_one_receipt() {
    let cluster = Cluster::start();
    let direct = cluster.create_database();
    let store = open(&format!("{direct} options='-c deadlock_timeout=1s'"), &["a", "b"]).await;
    apply(&store, "a", vec![create("m", "a"), create("n", "a")]).await.unwrap();
    // The store holds the revision of `a` and wants that of `b`, the other program the other way round.
    let revisions = |id: &str| {
        format!("SELECT 1 FROM conversation_session_revisions WHERE session_id = '{id}' FOR UPDATE")
    };
    let receipts = provoke(&direct, [&revisions("b"), &revisions("a")], async {
        apply(&store, "a", vec![move_to("m", "b")]).await.unwrap()
    })
    .await;
    let bases: Vec<_> = receipts
        .iter()
        .map(|receipt| (receipt.base.get(), receipt.revision.get(), receipt.operations().map(<[_]>::len)))
        .collect();
    assert_eq!(bases, [(3, 4, Some(1)), (1, 2, Some(1))]);

    // The store holds the revision of `a` and wants a row, whose holder then changes it.
    let row = "SELECT 1 FROM task_session_messages WHERE id = 'n' FOR UPDATE";
    let change = "UPDATE task_session_messages SET author_id = 'by hand' WHERE id = 'n'";
    let receipts =
        provoke(&direct, [row, change], async { apply(&store, "a", vec![append("n", 4)]).await.unwrap() })
            .await;
    assert_eq!(
        (receipts[0].base.get(), receipts[0].revision.get()),
        (5, 6),
        "behind the other program's step"
    );
    assert_eq!(messages(&store, "a").await[0].content, "textmore");
    assert_eq!(messages(&store, "a").await[0].author_id, "by hand");
}

/// What is looked up, and taken or removed by another transaction before it is used, is looked up again.
#[tokio::test(flavor = "multi_thread")]
async fn an_overtaken_call_is_refused_for_what_is_wrong() {
    let cluster = Cluster::start();
    let address = cluster.create_database();
    let store = open(&address, &["a", "b"]).await;
    let all = (0..8).map(|_| store.create_session(new_session("new")));
    for created in futures_util::future::join_all(all).await {
        assert_eq!(created.unwrap().id, "new");
    }

    let [in_a, in_b] = tokio::join!(async { apply(&store, "a", vec![create("same", "a")]).await }, async {
        apply(&store, "b", vec![create("same", "b")]).await
    },)
    .into();
    let ((Ok(_), Err(refused)) | (Err(refused), Ok(_))) = (in_a, in_b) else {
        panic!("one of two has the id")
    };
    assert!(
        matches!(refused.0, WriteErrorKind::Refused { index: 0, reason: BadMutation::DuplicateId }),
        "{refused:?}"
    );

    // The task is there when the store looks, and gone when it uses it.
    let [mut other, asker] = [connect(&address).await, connect(&address).await];
    let removing = other.transaction().await.unwrap();
    removing.execute("DELETE FROM tasks WHERE id = 'task'", &[]).await.unwrap();
    let commit = async {
        until_waiting(&asker, 2).await;
        removing.commit().await.unwrap();
    };
    let (created, written, ()) = tokio::join!(
        store.create_session(new_session("late")),
        apply(&store, "a", vec![create("late", "a")]),
        commit
    );
    assert!(matches!(created.unwrap_err().0, WriteErrorKind::UnknownTask));
    assert!(matches!(written.unwrap_err().0, WriteErrorKind::UnknownSession));
}
