//! Rows of 2.x.

use super::*;

fn assistant_row(content: &serde_json::Value) -> serde_json::Value {
    json!({"time": {"created": 1, "completed": 2}, "agent": "build", "content": content})
}

fn tool_item(status: &str, output: &str) -> serde_json::Value {
    json!({"type": "tool", "id": "c", "name": "shell", "state": {"status": status, "input": {}, "content": [{"type": "text", "text": output}]},
        "time": {"created": 1}})
}

/// Two turns of 2.x rows in a session whose row is in `table`.
fn two_turns(sample: &Sample, table: &str) {
    sample.session(table, "ses_n", None, 0);
    let reasoning = json!({"type": "reasoning", "text": "why"});
    let text = json!({"type": "text", "text": "answer"});
    sample.row("u1", "ses_n", 1, "user", &json!({"time": {"created": 1}, "text": "q", "files": []}));
    sample.row(
        "a1",
        "ses_n",
        2,
        "assistant",
        &assistant_row(&json!([reasoning, tool_item("completed", "out"), text])),
    );
    sample.row("a2", "ses_n", 3, "assistant", &assistant_row(&json!([text])));
    sample.row("a3", "ses_n", 4, "assistant", &assistant_row(&json!([tool_item("running", "out")])));
    sample.row(
        "a4",
        "ses_n",
        5,
        "assistant",
        &assistant_row(&json!([{"type": "hologram"}, tool_item("error", "e")])),
    );
    sample.row("i1", "ses_n", 6, "idle", &json!({"time": {"created": 1}, "outcome": "succeeded"}));
    sample.row("u2", "ses_n", 7, "user", &json!({"time": {"created": 1}, "text": "q", "files": []}));
    sample.row("a5", "ses_n", 8, "assistant", &assistant_row(&json!([tool_item("completed", "newest")])));
}

#[test]
fn technical_items_of_newer_rows_are_counted_as_they_will_be_removed() {
    let sample = Sample::v2();
    two_turns(&sample, "session_v2");
    let plan = plan(&sample, &select(&[Class::Technical]));
    assert_eq!(rewritten(&sample, &plan, "session_message", Class::Technical), ["a1"]);
    let stored: String = sample
        .db
        .query_row("SELECT data FROM session_message WHERE id = 'a1'", [], |row| row.get(0))
        .unwrap();
    let left = headwater_prune::remove_items(stored.as_bytes(), &[0, 1]).unwrap();
    let total = &plan.totals[&Class::Technical];
    assert_eq!((total.bytes.get(), total.precision), ((stored.len() - left.len()) as u64, Precision::Exact));
    assert_eq!(
        kept(&plan),
        [
            ("ses_n".to_owned(), Some("a3".to_owned()), KeptReason::ToolUnfinished),
            ("ses_n".to_owned(), Some("a4".to_owned()), KeptReason::UnknownKind),
            ("ses_n".to_owned(), None, KeptReason::NewestTurn),
        ]
    );
}

#[test]
fn retained_events_keep_newer_rows_unless_the_same_plan_takes_them() {
    let sample = Sample::both();
    two_turns(&sample, "session_v2");
    sample.event("ses_n", "message.updated.1", r#"{"info":{"id":"m"}}"#);
    let alone = plan(&sample, &select(&[Class::Technical]));
    assert_eq!(
        (alone.fates.len(), kept(&alone)),
        (0, vec![("ses_n".to_owned(), None, KeptReason::EventsRetained)])
    );
    let together = plan(&sample, &select(&[Class::Technical, Class::Events]));
    assert_eq!(dropped(&sample, &together, "event", Class::Events), ["evt_ses_n_000000"]);
    assert_eq!(rewritten(&sample, &together, "session_message", Class::Technical), ["a1"]);
    // What 2.x itself wrote is not left over from 1.x.
    sample.event("ses_n", "session.step.2", "{}");
    let more = plan(&sample, &select(&[Class::Technical, Class::Events]));
    assert_eq!(dropped(&sample, &more, "event", Class::Events), ["evt_ses_n_000000"]);
    assert!(!more.fates.contains_key("session_message"));
}

#[test]
fn newer_rows_of_a_1_x_session_keep_their_events_and_lose_technical_items() {
    let sample = Sample::v1_with_session_message();
    two_turns(&sample, "session");
    sample.event("ses_n", "session.next.step.1", "{}");
    let plan = plan(&sample, &select(&[Class::Technical, Class::Events]));
    assert!(!plan.fates.contains_key("event"));
    assert_eq!(rewritten(&sample, &plan, "session_message", Class::Technical), ["a1"]);
    assert!(kept(&plan).contains(&("ses_n".to_owned(), None, KeptReason::EventsRetained)));
}

#[test]
fn a_completed_compaction_of_2_x_is_where_the_model_begins() {
    let sample = Sample::v2();
    two_turns(&sample, "session_v2");
    let limited = Selection { before_compaction: true, newest_turn: true, ..select(&[Class::Technical]) };
    assert_eq!(plan(&sample, &limited).fates.len(), 0);
    sample.row(
        "c1",
        "ses_n",
        9,
        "compaction",
        &json!({"time": {"created": 1}, "status": "failed", "summary": ""}),
    );
    assert_eq!(plan(&sample, &limited).fates.len(), 0);
    sample.row(
        "c2",
        "ses_n",
        10,
        "compaction",
        &json!({"time": {"created": 1}, "status": "completed", "summary": "s"}),
    );
    assert_eq!(
        rewritten(&sample, &plan(&sample, &limited), "session_message", Class::Technical),
        ["a1", "a5"]
    );
}
