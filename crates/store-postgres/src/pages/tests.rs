//! What a page costs: each is read from ranges of an index.

use deadpool_postgres::{Manager, Pool};
use headwater_model::OrderTime;
use headwater_model::conversation::{OrderKey, Selection};
use headwater_store::PageLimit;
use headwater_testkit::postgres::Cluster;
use tokio_postgres::NoTls;

use super::*;
use crate::schema;

/// Three sessions of 20 000 turns and messages, one in a hundred of those a prompt, and a thousand small ones: enough that scanning or sorting is what a planner avoids.
const FILLED: &str = "
    INSERT INTO tasks (id, title, created_at, updated_at) VALUES ('task', '', now(), now());
    INSERT INTO task_sessions (id, task_id, started_at, updated_at)
        SELECT 's' || n, 'task', now(), now() FROM generate_series(1, 1003) n;
    INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
        SELECT format('t%s-%s', s, n), 's' || s, 'task', timestamp '2026-01-01' + n / 3 * interval '1 second', now(), now()
        FROM generate_series(1, 1003) s, generate_series(0, CASE WHEN s <= 3 THEN 19999 ELSE 1 END) n;
    INSERT INTO task_session_messages (id, task_session_id, turn_id, content, author_type, created_at, updated_at)
        SELECT format('m%s-%s', s, n), 's' || s, format('t%s-0', s), 'text', CASE WHEN n % 100 = 0 THEN 'user' ELSE 'agent' END,
            timestamp '2026-01-01' + n / 3 * interval '1 second', now()
        FROM generate_series(1, 1003) s, generate_series(0, CASE WHEN s <= 3 THEN 19999 ELSE 1 END) n;
    ANALYZE";

/// The lines of the plan of `sql` with `values`, planned for these values and for any.
async fn plans(transaction: &Transaction<'_>, sql: &str, values: &[String]) -> [Vec<String>; 2] {
    let mut plans = [Vec::new(), Vec::new()];
    for (plan, mode) in plans.iter_mut().zip(["force_custom_plan", "force_generic_plan"]) {
        let explain = format!(
            "SET LOCAL plan_cache_mode = {mode}; PREPARE page AS {sql}; EXPLAIN (COSTS OFF) EXECUTE page ({}); DEALLOCATE page",
            values.join(", ")
        );
        for message in transaction.simple_query(&explain).await.unwrap() {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                plan.push(row.get(0).unwrap().trim().trim_start_matches("->").trim().to_owned());
            }
        }
    }
    plans
}

/// The parts of a plan that say how rows are found.
fn access(plan: &[String]) -> String {
    let told = plan
        .iter()
        .filter(|line| line.contains("Scan") || line.contains("Sort") || line.starts_with("Index Cond"));
    told.cloned().collect::<Vec<_>>().join("; ")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_scans_a_table_or_sorts() {
    let cluster = Cluster::start();
    let config = cluster.create_database().parse().unwrap();
    let pool = Pool::builder(Manager::new(config, NoTls)).build().unwrap();
    schema::prepare(&pool).await.unwrap();
    let mut client = pool.get().await.unwrap();
    client.batch_execute(FILLED).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let after = |time: Option<&str>| OrderKey { time: time.map(OrderTime::from_stored), id: "m".to_owned() };
    let unnamed = format!("{}, false", rows::turn_columns());
    let mut told = String::new();
    for (name, table, time, columns, filter) in [
        ("messages", "task_session_messages", "created_at", rows::message_columns(), ""),
        (
            "prompts",
            "task_session_messages",
            "created_at",
            rows::message_columns(),
            " AND author_type = 'user'",
        ),
        ("turns", "task_session_turns", "started_at", unnamed, ""),
    ] {
        for sort in [Sort::Asc, Sort::Desc] {
            for boundary in [None, Some(after(Some("2026-01-01 01:00:00.000000"))), Some(after(None))] {
                for stretch in Stretch::behind(boundary.as_ref(), sort) {
                    let session = SessionId::new("s2").unwrap();
                    let query = PageQuery {
                        sort,
                        selection: Selection::default(),
                        limit: PageLimit::MAX,
                        ..PageQuery::of(session)
                    };
                    let (columns, filter) = (columns.clone(), filter.to_owned());
                    let reader =
                        Reader { transaction: &transaction, query: &query, table, time, columns, filter };
                    let (at, id) = bound(&stretch);
                    let mut values = vec!["'s2'".to_owned(), "101".to_owned(), "0".to_owned()];
                    values.extend(at.into_iter().chain(id).map(|text| format!("'{text}'")));
                    let plans = plans(&transaction, &reader.sql(&stretch), &values).await;
                    for plan in &plans {
                        let whole = plan.join("\n");
                        assert!(
                            !whole.contains("Seq Scan") && !whole.contains("Sort"),
                            "{name} {sort:?} {stretch:?}\n{whole}"
                        );
                        assert!(whole.contains("Index"), "{name} {sort:?} {stretch:?}\n{whole}");
                    }
                    let [custom, _] = plans.map(|plan| access(&plan));
                    told = format!("{told}{name} {sort:?} {stretch:?}: {custom}\n");
                }
            }
        }
    }
    insta::assert_snapshot!(told);
}
