//! One order, whatever is stored (C7, C34).

use headwater_model::conversation::MessageRecord;

use super::scene;
use crate::conformance::Fixture;
use crate::{ConversationSource, Mutation, PageLimit, PageQuery, Sort};

/// Spellings of times in their order, each with ids in their order: all that stands on one line is one microsecond.
const ORDER: [(&[&str], &str); 8] = [
    (
        &["2026-09-15 23:59:59.9999999+00:00", "2026-09-15T23:59:59.999999Z"],
        "the fraction is cut, not rounded",
    ),
    (&["2026-09-16 00:00:00", "2026-09-16T00:00:00Z", "2026-09-16 00:00:00+00:00"], "no fraction"),
    (&["2026-09-16T00:00:00.000001Z"], "one microsecond"),
    (
        &[
            "2026-09-16 00:00:00.123456+00:00",
            "2026-09-16 00:00:00.1234567+00:00",
            "2026-09-16T00:00:00.123456999Z",
        ],
        "cut",
    ),
    (&["2026-09-16 00:00:00.5+00:00", "2026-09-16T00:00:00.500Z"], "trailing zeros"),
    (&["2026-09-16T00:00:01Z", "2026-09-16 00:00:01.000000+00:00"], "T and space"),
    (&["2026-09-16T14:30:00+02:30", "2026-09-16 12:00:00+00:00"], "an offset"),
    (&["2026-09-16 12:00:01.000000+00:00"], "later"),
];

/// Every spelling that a database may hold sorts by its microsecond and then by the bytes of the id. `stored` says how the database is
/// given a text: the text itself, or what its type keeps of it.
pub async fn stored_times_order_alike<F: Fixture>(fixture: &F, stored: impl Fn(&str) -> String) {
    scene::begin(fixture, "s", "t").await;
    let mut wanted = Vec::new();
    for (line, (texts, _)) in ORDER.iter().enumerate() {
        // Ids against the order of insertion, so that only their bytes can be what orders them.
        for (number, text) in texts.iter().enumerate() {
            let id = format!("{}-{line}", ["a", "Z", "A"][number]);
            let time = stored(text);
            fixture
                .execute(&format!(
                    "INSERT INTO task_session_messages (id, task_session_id, turn_id, content, author_type, created_at, updated_at)
                     VALUES ('{id}', 's', 's', '', 'agent', '{time}', '{time}')"
                ))
                .await;
        }
        let mut ids: Vec<String> =
            (0..texts.len()).map(|number| format!("{}-{line}", ["a", "Z", "A"][number])).collect();
        ids.sort();
        wanted.append(&mut ids);
    }
    for sort in [Sort::Asc, Sort::Desc] {
        assert_eq!(walk(fixture, sort, 2).await, wanted, "{sort:?}");
        wanted.reverse();
    }
}

/// 250 messages of one microsecond, 100 to a page: each once, in the same order both ways (case C09).
pub async fn ties_stand_once_in_one_order<F: Fixture>(fixture: &F) {
    scene::begin(fixture, "s", "t").await;
    let ids: Vec<String> = (0..250).map(|number| format!("m{:03}", number * 7 % 250)).collect();
    let mutations = ids.iter().map(|id| scene::create(id, "s")).collect();
    scene::apply(fixture, "s", 5, mutations).await.expect("250 messages");
    let mut wanted = ids;
    wanted.sort();
    assert_eq!(walk(fixture, Sort::Asc, 100).await, wanted);
    wanted.reverse();
    assert_eq!(walk(fixture, Sort::Desc, 100).await, wanted);
}

/// The record at a boundary is deleted between two pages; the next page begins where it stood (C9).
pub async fn a_deleted_boundary_still_is_one<F: Fixture>(fixture: &F) {
    let session = scene::begin(fixture, "s", "t").await;
    let mutations = ["a", "b", "c", "d"].map(|id| scene::create(id, "s")).into();
    scene::apply(fixture, "s", 5, mutations).await.expect("four messages");
    let limit = PageLimit::new(2).expect("a size");
    let mut query = PageQuery { limit, ..PageQuery::of(session) };
    let first = fixture.store().messages(&query).await.expect("a page");
    query.after = first.records.last().map(MessageRecord::order_key);
    let gone = vec![Mutation::DeleteMessage { message: scene::message("b") }];
    scene::apply(fixture, "s", 6, gone).await.expect("a removal");
    let second = fixture.store().messages(&query).await.expect("a page");
    let ids: Vec<&str> = second.records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!((ids, second.has_more), (vec!["c", "d"], false));
}

/// The ids of all messages, page by page.
async fn walk<F: Fixture>(fixture: &F, sort: Sort, limit: u64) -> Vec<String> {
    let limit = PageLimit::new(limit).expect("a size");
    let mut query = PageQuery { sort, limit, ..PageQuery::of(scene::session("s")) };
    let mut ids = Vec::new();
    loop {
        let page = fixture.store().messages(&query).await.expect("a page");
        query.after = page.records.last().map(MessageRecord::order_key);
        ids.extend(page.records.into_iter().map(|record| record.id));
        if !page.has_more {
            return ids;
        }
    }
}
