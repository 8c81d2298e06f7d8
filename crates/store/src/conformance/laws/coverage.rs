//! Receipts and what happens past the store, against a log of every step.

mod plan;

use std::collections::BTreeMap;
use std::thread;

use headwater_model::SessionId;
use headwater_model::conversation::Receipt;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::scene;
use crate::conformance::view::View;
use crate::conformance::{Choices, Fixture, GaveWay, LoggedStep};
use crate::{Batch, ConversationSource, ConversationWriter, PageLimit, PageQuery, WriteErrorKind};
use plan::{Planned, Scene};

/// Threads that write through the store.
const WRITERS: usize = 8;

/// Programs that write past it.
const OTHERS: usize = 4;

/// Writers move, complete, append and remove in the same sessions, while other programs change rows, move them, and remove sessions, tasks and workspaces. A log
/// that the database itself keeps then says for every step of every revision who made it: each of the store's has exactly one receipt, and
/// no receipt speaks of another's, so that those are the gaps (C2, C5, cases A01, A04, A05, A08, B01, B06). Where nobody wrote past the store, the
/// operations of all receipts, applied to nothing, are the rows.
pub async fn every_step_has_one_receipt_or_another_author<F: Fixture>(fixture: &F) {
    fixture.log_steps().await;
    let choices = Choices::begin();
    let mut receipts = plan::set_up(fixture).await;
    let runtime = Handle::current();
    block_in_place(|| {
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| {
                    let (runtime, plan) = (runtime.clone(), Scene::writer(number, choices.of_part(number)));
                    scope.spawn(move || runtime.block_on(write(fixture, plan)))
                })
                .collect();
            for number in 0..OTHERS {
                let (runtime, plan) =
                    (runtime.clone(), Scene::other(number, choices.of_part(WRITERS + number)));
                scope.spawn(move || runtime.block_on(write_past(fixture, plan)));
            }
            for writer in writers {
                receipts.extend(writer.join().expect("a writer that ends"));
            }
        });
    });
    ensure_covered(&receipts, &fixture.steps().await);
    for session in plan::QUIET {
        ensure_replayed(fixture, session, &receipts).await;
    }
    ensure_no_orphans(fixture).await;
}

/// Makes the changes of a plan, and answers with all receipts.
async fn write<F: Fixture>(fixture: &F, plan: Vec<Planned>) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    for planned in plan {
        match planned {
            Planned::Write(batch) => receipts.extend(apply(fixture, batch).await),
            Planned::DeleteSession(session) => {
                match fixture.store().delete_session(&session).await.map_err(|error| error.0) {
                    Ok(()) | Err(WriteErrorKind::UnknownSession | WriteErrorKind::Busy(_)) => {}
                    Err(error) => panic!("{session} is removed: {error:?}"),
                }
            }
        }
    }
    receipts
}

/// A receipt is known only when everybody can see what it speaks of.
async fn apply<F: Fixture>(fixture: &F, batch: Batch) -> Vec<Receipt> {
    match fixture.store().apply(batch.clone()).await.map_err(|error| error.0) {
        Ok(written) => {
            for receipt in &written.receipts {
                let seen = fixture.store().revision(&receipt.session).await.expect("a revision");
                assert!(
                    seen.is_none_or(|seen| seen >= receipt.revision),
                    "{receipt:?} was not committed: {seen:?}"
                );
            }
            written.receipts
        }
        Err(WriteErrorKind::Refused { .. } | WriteErrorKind::UnknownSession | WriteErrorKind::Busy(_)) => {
            Vec::new()
        }
        Err(error) => panic!("{batch:?}: {error:?}"),
    }
}

async fn write_past<F: Fixture>(fixture: &F, plan: Vec<String>) {
    let mut program = fixture.connect().await;
    for sql in plan {
        // Whoever gave way changed nothing, and nothing is logged.
        let (Ok(()) | Err(GaveWay)) = program.execute(&sql).await;
    }
}

/// Each step of the store is in one receipt, each step of another program in none, and no receipt speaks of a step that was not made.
fn ensure_covered(receipts: &[Receipt], steps: &[LoggedStep]) {
    let mut by_session: BTreeMap<&str, BTreeMap<i64, &LoggedStep>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.revision > step.base) {
        let twice = by_session.entry(&step.session).or_default().insert(step.revision, step);
        assert_eq!(twice, None, "a revision was reached twice");
    }
    let by_others = steps.iter().filter(|step| !step.by_store).count();
    assert!(
        by_others > 20 && steps.len() - by_others > 100,
        "{by_others} of {} steps past the store",
        steps.len()
    );
    let mut covered = 0;
    for receipt in receipts.iter().filter(|receipt| receipt.is_step()) {
        assert!(receipt.operations().is_some(), "a reset where everything was known: {receipt:?}");
        let (base, revision) = (receipt.base.get(), receipt.revision.get());
        let of_session = by_session.entry(receipt.session.as_str()).or_default();
        let mut at = revision;
        while at > base {
            let step = of_session.remove(&at);
            let step =
                step.unwrap_or_else(|| panic!("step {at} of {receipt:?} was not made, or has two receipts"));
            assert!(step.by_store, "{receipt:?} speaks of a step that another program made");
            at = step.base;
            covered += 1;
        }
        assert_eq!(at, base, "{receipt:?} begins within a step");
    }
    let left = by_session.values().flat_map(BTreeMap::values).filter(|step| step.by_store);
    assert_eq!(left.collect::<Vec<_>>(), Vec::<&&LoggedStep>::new(), "steps without a receipt");
    assert!(covered > 100, "only {covered} steps have receipts");
}

/// The receipts of a session that only the store wrote form one chain from zero, and their operations make its rows out of nothing.
async fn ensure_replayed<F: Fixture>(fixture: &F, id: &str, receipts: &[Receipt]) {
    let mut chain: Vec<&Receipt> =
        receipts.iter().filter(|receipt| receipt.session.as_str() == id && receipt.is_step()).collect();
    chain.sort_by_key(|receipt| receipt.base);
    let (mut at, mut view) = (0, View::default());
    for receipt in chain {
        assert_eq!(receipt.base.get(), at, "a gap in {id}");
        for operation in receipt.operations().unwrap_or_default() {
            view.apply(operation).unwrap_or_else(|what| panic!("{receipt:?}: {what}"));
        }
        at = receipt.revision.get();
    }
    let (revision, stored) = stored(fixture, &scene::session(id)).await;
    assert_eq!(revision, at, "the last receipt of {id}");
    assert_eq!(view, stored, "what the operations of {id} make");
}

/// What pages of a session hold, and at which revision.
async fn stored<F: Fixture>(fixture: &F, session: &SessionId) -> (i64, View) {
    let mut query = PageQuery { limit: PageLimit::MAX, ..PageQuery::of(session.clone()) };
    let turns = fixture.store().turns(&query).await.expect("turns");
    assert!(!turns.has_more, "more turns than a page has");
    let mut messages = Vec::new();
    loop {
        let page = fixture.store().messages(&query).await.expect("messages");
        query.after = page.records.last().map(headwater_model::conversation::MessageRecord::order_key);
        messages.extend(page.records);
        if !page.has_more {
            return (page.revision.get(), View::new(messages, turns.records));
        }
    }
}

async fn ensure_no_orphans<F: Fixture>(fixture: &F) {
    for (table, session) in [
        ("task_session_messages", "task_session_id"),
        ("task_session_turns", "task_session_id"),
        ("conversation_session_revisions", "session_id"),
    ] {
        let orphans =
            format!("SELECT count(*) FROM {table} WHERE {session} NOT IN (SELECT id FROM task_sessions)");
        assert_eq!(fixture.count(&orphans).await, 0, "{table} without a session");
    }
}
