//! What a page costs, and that no stored row keeps one from being read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headwater_model::conversation::{OrderKey, Selection};
use headwater_model::{OrderTime, WallTime};
use headwater_store::PageLimit;

use super::*;
use crate::schema;

const HOST: &str = include_str!("../../tests/host/tables.sql");

fn prepared(sql: &str) -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    db.execute_batch(sql).unwrap();
    schema::prepare(&mut db, std::path::Path::new("unused"), &mut |_| Ok(())).unwrap();
    db
}

/// One session with `messages` messages, one in a hundred of them a prompt, all in one turn of as many.
fn filled(messages: u32) -> Connection {
    let db = prepared("");
    let now = "'2026-01-01 00:00:00+00:00'";
    let at = "strftime('%Y-%m-%d %H:%M:%S', 1790000000 + n / 3, 'unixepoch') || '.' || (n % 3) || '+00:00'";
    db.execute_batch(&format!(
        "INSERT INTO tasks (id, title, created_at, updated_at) VALUES ('task', '', {now}, {now});
         INSERT INTO task_sessions (id, task_id, started_at, updated_at) VALUES ('s', 'task', {now}, {now});
         WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count WHERE n + 1 < {messages})
         INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
             SELECT printf('t%07d', n), 's', 'task', {at}, {now}, {now} FROM count;
         WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count WHERE n + 1 < {messages})
         INSERT INTO task_session_messages (id, task_session_id, turn_id, content, author_type, created_at, updated_at)
             SELECT printf('m%07d', n), 's', 't0000000', 'text', iif(n % 100 = 0, 'user', 'agent'), {at}, {now} FROM count;"
    ))
    .unwrap();
    db
}

/// Runs `work` and counts the steps of SQLite's virtual machine.
fn steps<T>(db: &Connection, work: impl FnOnce() -> T) -> (T, u64) {
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let tick = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    db.progress_handler(1, Some(tick)).unwrap();
    let answer = work();
    db.progress_handler(0, None::<fn() -> bool>).unwrap();
    (answer, count.load(Ordering::Relaxed))
}

fn query(sort: Sort, authors: Option<Author>) -> PageQuery {
    let selection = Selection { task: None, authors: authors.map(|author| [author].into()) };
    PageQuery { sort, selection, limit: PageLimit::MAX, ..PageQuery::of(SessionId::new("s").unwrap()) }
}

#[test]
fn a_page_costs_the_same_wherever_it_is_and_however_long_the_session() {
    let (short, long) = (filled(2_000), filled(40_000));
    for sort in [Sort::Asc, Sort::Desc] {
        for authors in [None, Some(Author::User)] {
            let first = query(sort, authors);
            let (page, cheapest) = steps(&short, || messages(&short, &first).unwrap());
            assert!(page.records.len() >= 20);
            let mut costs = Vec::new();
            let mut at = first.clone();
            // Deep inside: as if that page had been the one before.
            for number in [0, 12_300, 29_700] {
                if number > 0 {
                    let sql = format!(
                        "SELECT {} FROM task_session_messages WHERE id = ?1",
                        rows::message_columns()
                    );
                    let boundary = long.query_row(&sql, [format!("m{number:07}")], rows::message).unwrap();
                    at.after = Some(boundary.order_key());
                }
                let (page, cost) = steps(&long, || messages(&long, &at).unwrap());
                assert_eq!(page.records.len(), 100, "{sort:?} {authors:?} {number}");
                costs.push(cost);
            }
            let per_record = cheapest.div_ceil(page.records.len() as u64);
            for cost in &costs {
                assert!(
                    *cost <= per_record * 100 * 12 / 10,
                    "{sort:?} {authors:?}: {costs:?}, {cheapest} in a short one"
                );
            }
        }
        let first = query(sort, None);
        let (_, short_cost) = steps(&short, || turns(&short, &first).unwrap());
        let (_, long_cost) = steps(&long, || turns(&long, &first).unwrap());
        assert!(long_cost * 10 <= short_cost * 12, "turns {sort:?}: {short_cost}, {long_cost}");
    }
}

#[test]
fn no_page_scans_a_table_or_sorts() {
    let db = filled(1_000);
    let after = |time: Option<&str>| OrderKey { time: time.map(OrderTime::from_stored), id: "m".to_owned() };
    let mut plans = String::new();
    for (name, authors) in [("messages", None), ("prompts", Some(Author::User))] {
        for sort in [Sort::Asc, Sort::Desc] {
            for boundary in [None, Some(after(Some("2026-09-21 14:13:20.000000"))), Some(after(None))] {
                for stretch in Stretch::behind(boundary.as_ref(), sort) {
                    let query = query(sort, authors);
                    let columns = rows::message_columns();
                    let (table, time) = ("task_session_messages", "created_at");
                    let reader = Reader { db: &db, query: &query, table, time, columns };
                    let filter = if authors.is_some() { " AND author_type = 'user'" } else { "" };
                    let (sql, mut values) = reader.select(&stretch, filter);
                    values.insert(0, "s".to_owned().into());
                    let condition = condition(&stretch, "time", sort).0;
                    let sql = format!("EXPLAIN QUERY PLAN {sql}");
                    let mut statement = db.prepare(&sql).unwrap();
                    let details: Vec<String> = statement
                        .query_map(params_from_iter(values), |row| row.get(3))
                        .unwrap()
                        .map(Result::unwrap)
                        .collect();
                    plans = format!(
                        "{plans}{name} {sort:?}{}: {}\n",
                        condition.replace(time, "time"),
                        details.join("; ")
                    );
                }
            }
        }
    }
    insta::assert_snapshot!(plans);
}

#[test]
fn rows_of_an_old_host_are_read_whatever_they_hold() {
    let db = prepared(HOST);
    let page = messages(&db, &query(Sort::Asc, None)).unwrap();
    let ids: Vec<&str> = page.records.iter().map(|record| record.id.as_str()).collect();
    // No time comes first; m2 and m1 are the same microsecond.
    assert_eq!(ids, ["m3", "m0", "m1", "m2"]);
    let odd = &page.records[0];
    assert_eq!(
        (odd.content.as_str(), odd.created_at, odd.task_id.as_deref()),
        ("f\u{fffd}o", WallTime::UNKNOWN, None)
    );
    assert_eq!(page.records[2].created_at.to_string(), "2026-01-01T00:00:02.123456789Z");
    assert_eq!(page.records[2].prompt_index, None, "it was written before prompts had numbers");
    for sort in [Sort::Asc, Sort::Desc] {
        let mut at = PageQuery { limit: PageLimit::new(1).unwrap(), ..query(sort, None) };
        let mut walked = Vec::new();
        loop {
            let page = messages(&db, &at).unwrap();
            at.after = page.records.last().map(MessageRecord::order_key);
            walked.extend(page.records.into_iter().map(|record| record.id));
            if !page.has_more {
                break;
            }
        }
        if sort == Sort::Desc {
            walked.reverse();
        }
        assert_eq!(walked, ids, "{sort:?}");
    }
}
