//! What becomes of revisions and receipts (C2, C5, C6).

use headwater_model::Revision;
use headwater_model::conversation::{Author, Coverage};

use super::scene;
use crate::conformance::Fixture;
use crate::{BadMutation, ConversationWriter, Mutation, NewMessage, WriteErrorKind};

/// Direct SQL moves the revision where it changes something, and only there; the next receipt begins where it left off (cases A04, A15, A16, B06).
pub async fn changes_past_the_store_move_the_revision<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    scene::begin(fixture, "other", "t").await;
    let created = ["a", "b", "c"].map(|id| scene::create(id, "s")).into();
    scene::apply(fixture, "s", 1, created).await.expect("three messages");
    let changes = [
        ("UPDATE task_session_messages SET content = 'new' WHERE id = 'a'", true),
        ("UPDATE task_session_messages SET content = content, metadata = metadata", false),
        ("UPDATE task_session_messages SET content = 'newer' WHERE task_session_id = 's'", true),
        ("UPDATE task_session_turns SET metadata = '{\"x\":1}' WHERE id = 's'", true),
        ("UPDATE task_session_turns SET route_generation = route_generation", false),
        ("UPDATE task_sessions SET name = 'named'", false),
        ("DELETE FROM task_session_messages WHERE id = 'c'", true),
        ("DELETE FROM task_session_messages WHERE id = 'not there'", false),
    ];
    for (sql, moves) in changes {
        let before = scene::revision(fixture, "s").await;
        fixture.execute(sql).await;
        assert_eq!(scene::revision(fixture, "s").await > before, moves, "{sql}");
    }
    let before = [scene::revision(fixture, "s").await, scene::revision(fixture, "other").await];
    fixture
        .execute(
            "UPDATE task_session_messages SET task_session_id = 'other', turn_id = 'other' WHERE id = 'b'",
        )
        .await;
    let after = [scene::revision(fixture, "s").await, scene::revision(fixture, "other").await];
    assert_eq!(
        after,
        before.map(|revision| revision.and_then(|revision| revision.after(1))),
        "a move raises both once"
    );

    let receipts = scene::apply(fixture, "s", 9, vec![scene::create("d", "s")]).await.expect("a message");
    assert_eq!(
        Some(receipts[0].base),
        after[0],
        "the gap is seen: nothing claims what happened past the store"
    );
}

/// A batch of which one mutation is refused leaves neither rows nor a revision behind.
pub async fn a_batch_that_fails_leaves_nothing<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    let before = scene::revision(fixture, "s").await;
    let unknown = Mutation::DeleteMessage { message: scene::message("nobody") };
    let error =
        scene::apply(fixture, "s", 1, vec![scene::create("a", "s"), unknown]).await.expect_err("a refusal");
    let wanted = WriteErrorKind::Refused { index: 1, reason: BadMutation::UnknownMessage };
    assert_eq!(error.to_string(), wanted.to_string());
    assert_eq!(scene::revision(fixture, "s").await, before);
    assert_eq!(fixture.count("SELECT count(*) FROM task_session_messages").await, 0);
    scene::apply(fixture, "s", 2, vec![scene::create("a", "s")]).await.expect("the next call works");
}

/// Repeating creations is no change; the receipt says so (C10).
pub async fn a_repeated_batch_changes_nothing<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    let batch = || vec![Mutation::CreateTurn(scene::new_turn("u")), scene::create("a", "u")];
    let first = scene::apply(fixture, "s", 1, batch()).await.expect("a batch");
    let again = scene::apply(fixture, "s", 2, batch()).await.expect("the same batch");
    assert!(first[0].is_step());
    assert_eq!((again[0].base, again[0].revision), (first[0].revision, first[0].revision));
    assert_eq!(again[0].coverage, Coverage::Complete(Vec::new()));
}

/// A session that goes, by itself or with its task, leaves no turn, no message and no revision (case A05).
pub async fn a_session_is_gone_without_a_trace<F: Fixture>(fixture: &F) {
    for (id, task) in [("s", "t"), ("other", "u")] {
        scene::begin(fixture, id, task).await;
        scene::apply(fixture, id, 1, vec![scene::create(&format!("m-{id}"), id)]).await.expect("a message");
    }
    fixture.store().delete_session(&scene::session("s")).await.expect("a removal");
    fixture.execute("DELETE FROM tasks WHERE id = 'u'").await;
    for (table, column) in [
        ("task_session_messages", "id"),
        ("task_session_turns", "id"),
        ("conversation_session_revisions", "session_id"),
        ("task_sessions", "id"),
    ] {
        assert_eq!(fixture.count(&format!("SELECT count({column}) FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(scene::revision(fixture, "s").await, None);
    let error = fixture.store().delete_session(&scene::session("s")).await.expect_err("gone");
    assert!(matches!(error.0, WriteErrorKind::UnknownSession));
    let error = scene::apply(fixture, "s", 2, vec![]).await.expect_err("gone");
    assert!(matches!(error.0, WriteErrorKind::UnknownSession));
}

/// A workspace takes its tasks, their sessions and all that hangs on them; what another one has stays.
pub async fn a_workspace_is_gone_without_a_trace<F: Fixture>(fixture: &F) {
    let now = "'2026-01-01 00:00:00'";
    for (workspace, task, sessions) in
        [("w", "t", ["a", "b"]), ("w", "u", ["c", "d"]), ("kept", "k", ["e", "f"])]
    {
        let add = "INSERT INTO workspaces (id, created_at, updated_at) VALUES";
        fixture.execute(&format!("{add} ('{workspace}', {now}, {now}) ON CONFLICT (id) DO NOTHING")).await;
        for id in sessions {
            scene::begin(fixture, id, task).await;
            scene::apply(fixture, id, 1, vec![scene::create(&format!("m-{id}"), id)])
                .await
                .expect("a message");
        }
        fixture.execute(&format!("UPDATE tasks SET workspace_id = '{workspace}' WHERE id = '{task}'")).await;
    }
    fixture.execute("DELETE FROM workspaces WHERE id = 'w'").await;
    for (table, id, left) in [
        ("workspaces", "id", 1),
        ("tasks", "id", 1),
        ("task_sessions", "id", 2),
        ("task_session_turns", "id", 2),
        ("task_session_messages", "id", 2),
        ("conversation_session_revisions", "session_id", 2),
    ] {
        assert_eq!(fixture.count(&format!("SELECT count({id}) FROM {table}")).await, left, "{table}");
    }
    assert_eq!(scene::revision(fixture, "a").await, None);
    scene::apply(fixture, "e", 2, vec![scene::create("n", "e")]).await.expect("what is kept can be written");
}

/// A prompt's number is not given again when the prompt is gone (C6).
pub async fn numbers_of_prompts_are_never_used_twice<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    let prompt = |id: &str| Mutation::CreateMessage(scene::new_message(id, "s", Author::User));
    scene::apply(fixture, "s", 1, vec![prompt("a"), prompt("b")]).await.expect("two prompts");
    let gone = Mutation::DeleteMessage { message: scene::message("b") };
    scene::apply(fixture, "s", 2, vec![gone, prompt("c")]).await.expect("a third prompt");
    let number = |id: &str| format!("SELECT prompt_seq FROM task_session_messages WHERE id = '{id}'");
    assert_eq!(fixture.count(&number("a")).await, 1);
    assert_eq!(fixture.count(&number("c")).await, 3);

    // The clock goes back: prompts still go on in order; an import that does not is refused.
    scene::apply(fixture, "s", -100, vec![prompt("d")]).await.expect("a prompt");
    let at = |id: &str| {
        format!(
            "SELECT count(*) FROM task_session_messages WHERE id > '{id}' AND created_at > (SELECT created_at FROM task_session_messages WHERE id = '{id}')"
        )
    };
    assert_eq!(fixture.count(&at("c")).await, 1);
    let import =
        NewMessage { created_at: Some(scene::time(-50)), ..scene::new_message("e", "s", Author::User) };
    let error =
        scene::apply(fixture, "s", 9, vec![Mutation::CreateMessage(import)]).await.expect_err("too early");
    let wanted = WriteErrorKind::Refused { index: 0, reason: BadMutation::NotAfterPrompts };
    assert_eq!(error.to_string(), wanted.to_string());
}

/// A clock that goes back changes what times say, not the order of steps: each receipt begins where the one before ended.
pub async fn a_clock_that_goes_back_keeps_receipts_in_order<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    let mut at = scene::revision(fixture, "s").await.expect("a session");
    let more = |offset_bytes| Mutation::AppendContent {
        message: scene::message("a"),
        offset_bytes,
        text: "more".into(),
    };
    let ends = Mutation::CompleteTurn { turn: scene::turn("s"), completed_at: None };
    for (time, mutation) in [
        (1_000, scene::create("a", "s")),
        (-5_000, scene::create("b", "s")),
        (900, more(4)),
        (-9_000, more(8)),
        (-9_000_000_000, ends),
    ] {
        let receipts = scene::apply(fixture, "s", time, vec![mutation]).await.expect("a change");
        assert_eq!((receipts[0].base, receipts[0].revision), (at, at.after(1).expect("a revision")));
        at = receipts[0].revision;
    }
    let order = "SELECT count(*) FROM task_session_messages WHERE id = 'b' AND created_at < (SELECT created_at FROM task_session_messages WHERE id = 'a')";
    assert_eq!(fixture.count(order).await, 1, "messages of an agent keep the times they were given");
}

/// Revisions beyond what a double can count stay exact (case A18).
pub async fn revisions_keep_every_digit<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    fixture
        .execute(
            "UPDATE conversation_session_revisions SET revision = 9007199254740993 WHERE session_id = 's'",
        )
        .await;
    let receipts = scene::apply(fixture, "s", 1, vec![scene::create("a", "s")]).await.expect("a message");
    assert_eq!(receipts[0].base.to_string(), "9007199254740993");
    assert_eq!(receipts[0].revision.to_string(), "9007199254740994");
    fixture.execute("DELETE FROM conversation_session_revisions WHERE session_id = 's'").await;
    assert_eq!(
        scene::revision(fixture, "s").await.map(Revision::get),
        Some(0),
        "a missing row is zero (case C15)"
    );
}

/// More operations than a client buffers make a reset (C5, case A08).
pub async fn long_descriptions_are_resets<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    scene::apply(fixture, "s", 1, vec![Mutation::CreateTurn(scene::new_turn("u"))]).await.expect("a turn");
    let mutations = (0..256).map(|number| scene::create(&format!("m{number}"), "u")).collect();
    let receipts = scene::apply(fixture, "s", 2, mutations).await.expect("256 messages");
    assert_eq!(receipts[0].operations().map(<[_]>::len), Some(256));
    let gone = vec![Mutation::DeleteTurn { turn: scene::turn("u") }];
    let receipts = scene::apply(fixture, "s", 3, gone).await.expect("a removal");
    assert_eq!(receipts[0].coverage, Coverage::Reset, "257 removals");
    assert!(receipts[0].is_step());
}
