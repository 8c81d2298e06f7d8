//! Writers beside each other.

use std::collections::BTreeMap;

use headwater_model::conversation::Receipt;
use headwater_model::{Revision, SessionId};

use super::scene;
use crate::Mutation;
use crate::conformance::Fixture;

/// Writers that run beside each other.
const WRITERS: usize = 8;

/// Batches of each.
const BATCHES: usize = 25;

/// However writers of the same sessions interleave, their receipts cover every step of each session exactly once (C5, cases A01, B01). `join` runs the writers
/// beside each other.
pub async fn receipts_of_concurrent_writers_cover_every_step_once<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    scene::begin(fixture, "other", "t").await;
    let base = [scene::revision(fixture, "s").await, scene::revision(fixture, "other").await];
    let writers = (0..WRITERS).map(|writer| write(fixture, writer));
    let receipts: Vec<Receipt> =
        futures_util::future::join_all(writers).await.into_iter().flatten().collect();
    for (id, base) in ["s", "other"].into_iter().zip(base) {
        let mut intervals: BTreeMap<Revision, Revision> = BTreeMap::new();
        for receipt in receipts.iter().filter(|receipt| receipt.session.as_str() == id && receipt.is_step()) {
            assert!(receipt.operations().is_some(), "a reset where everything was known");
            let twice = intervals.insert(receipt.base, receipt.revision);
            assert_eq!(twice, None, "two receipts begin at {}", receipt.base);
        }
        let mut at = base.expect("a session");
        for (base, revision) in intervals {
            assert_eq!(base, at, "a gap in {id}");
            at = revision;
        }
        assert_eq!(Some(at), scene::revision(fixture, id).await, "the last receipt of {id}");
    }
}

/// Each batch creates a message in one session, adds to it, and moves it to the other.
async fn write<F: Fixture>(fixture: &F, writer: usize) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    for number in 0..BATCHES {
        let id = format!("m-{writer}-{number}");
        let (from, to) = if (writer + number).is_multiple_of(2) { ("s", "other") } else { ("other", "s") };
        let append =
            Mutation::AppendContent { message: scene::message(&id), offset_bytes: 4, text: "more".into() };
        let moved = Mutation::MoveMessage {
            message: scene::message(&id),
            to_session: SessionId::new(to).expect("an id"),
            to_turn: scene::turn(to),
        };
        let at = i64::try_from(number).expect("a small number");
        for mutations in [vec![scene::create(&id, from)], vec![append, moved]] {
            receipts.extend(scene::apply(fixture, from, at, mutations).await.expect("a batch"));
        }
    }
    receipts
}
