//! Plans over small databases, one case per rule.

use std::collections::BTreeMap;

use headwater_model::{DAY_MS, SessionId, UnixMillis};
use headwater_prune::{Class, Classes, KeptReason};
use serde_json::json;

use super::{Plan, PlanErrorKind, Precision, Selection, compute};
use crate::observer::Unobserved;
use crate::survey::sample::{NOW, Sample, reasoning, running, text, tool, tool_with};

fn select(classes: &[Class]) -> Selection {
    Selection::new(classes.iter().copied().collect::<Classes>(), UnixMillis::new(NOW))
}

fn older_than(days: i64) -> Selection {
    Selection { used_before: Some(UnixMillis::new(NOW - days * DAY_MS)), ..select(&[Class::Sessions]) }
}

fn plan(sample: &Sample, selection: &Selection) -> Plan {
    compute(&sample.db, &sample.schema(), selection, &Unobserved).unwrap()
}

fn ids(sample: &Sample, table: &str, rows: Option<&super::RowIds>) -> Vec<String> {
    let mut found: Vec<String> = rows
        .into_iter()
        .flatten()
        .map(|row| {
            let sql = format!("SELECT id FROM {table} WHERE rowid = ?1");
            sample.db.query_row(&sql, [row.cast_signed()], |row| row.get(0)).unwrap()
        })
        .collect();
    found.sort();
    found
}

fn dropped(sample: &Sample, plan: &Plan, table: &'static str, class: Class) -> Vec<String> {
    ids(sample, table, plan.fates.get(table).and_then(|fate| fate.dropped.get(&class)))
}

fn rewritten(sample: &Sample, plan: &Plan, table: &'static str, class: Class) -> Vec<String> {
    ids(sample, table, plan.fates.get(table).and_then(|fate| fate.rewritten.get(&class)))
}

fn kept(plan: &Plan) -> Vec<(String, Option<String>, KeptReason)> {
    plan.kept.iter().map(|kept| (kept.session.to_string(), kept.message.clone(), kept.reason)).collect()
}

/// Bytes that rows of `table` hold in `data`.
fn bytes_of(sample: &Sample, table: &str, ids: &[&str]) -> u64 {
    ids.iter()
        .map(|id| {
            let sql = format!("SELECT octet_length(data) FROM {table} WHERE id = ?1");
            sample.db.query_row(&sql, [id], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
        })
        .sum()
}

/// Live sessions whose log holds every intermediate copy, some of them equal byte for byte.
fn growing_copies() -> Sample {
    let sample = Sample::v1();
    for s in 0..3 {
        let session = format!("ses_{s}");
        sample.session("session", &session, None, 0);
        sample.event(
            &session,
            "session.created.1",
            &json!({"sessionID": session, "info": {"id": session}}).to_string(),
        );
        for m in 0..4 {
            let message = format!("msg_{s}_{m}");
            let full = format!("answer {s}.{m} ").repeat(400);
            if m % 2 == 0 {
                sample.user(&message, &session, m);
            } else {
                sample.assistant(&message, &session, m);
            }
            sample.part(&format!("prt_{s}_{m}"), &message, &session, &text(&full));
            for step in (1..=30).filter(|_| m % 2 == 1) {
                let part = json!({"id": format!("prt_{s}_{m}"), "messageID": message, "type": "text", "text": &full[..full.len() * step / 30]});
                let data = json!({"sessionID": session, "part": part});
                sample.event(&session, "message.part.updated.1", &data.to_string());
                for _ in (0..2).filter(|_| step % 10 == 0) {
                    let info =
                        json!({"id": message, "role": "assistant", "summary": {"diffs": ["x".repeat(2000)]}});
                    let data = json!({"sessionID": session, "info": info});
                    sample.event(&session, "message.updated.1", &data.to_string());
                }
            }
        }
        sample.event(
            &session,
            "message.removed.1",
            &json!({"sessionID": session, "messageID": "msg_gone"}).to_string(),
        );
    }
    sample
}

#[test]
fn superseded_events_are_all_but_the_newest_copy_of_each_entity() {
    let sample = growing_copies();
    let plan = plan(&sample, &select(&[Class::SupersededEvents]));
    let expected: BTreeMap<String, i64> = sample
        .db
        .prepare(
            "SELECT id, octet_length(data) FROM event e WHERE type IN ('message.updated.1', 'message.part.updated.1') AND EXISTS (
               SELECT 1 FROM event n WHERE n.aggregate_id = e.aggregate_id AND n.type = e.type AND n.seq > e.seq
               AND coalesce(json_extract(n.data, '$.part.id'), json_extract(n.data, '$.info.id'))
                 = coalesce(json_extract(e.data, '$.part.id'), json_extract(e.data, '$.info.id')))",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(
        dropped(&sample, &plan, "event", Class::SupersededEvents),
        expected.keys().cloned().collect::<Vec<_>>()
    );
    let total = &plan.totals[&Class::SupersededEvents];
    // 3 sessions of 2 answers: 29 of 30 part copies and 5 of 6 message copies go.
    assert_eq!((total.rows_dropped, total.sessions, total.precision), (3 * 2 * 34, 3, Precision::Exact));
    assert_eq!(total.bytes.get(), expected.values().sum::<i64>().cast_unsigned());
    assert_eq!(plan.fates.keys().copied().collect::<Vec<_>>(), ["event"]);
}

#[test]
fn copies_of_sessions_are_superseded_and_every_other_type_stays() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0).assistant("msg_a", "ses_a", 1);
    let copy = |id: &str| format!(r#"{{"sessionID":"ses_a","info":{{"id":"{id}"}}}}"#);
    for event_type in [
        "session.created.1",
        "session.updated.1",
        "session.updated.1",
        "message.removed.1",
        "message.removed.1",
        "message.updated.2",
        "message.updated.2",
        "future.1",
    ] {
        sample.event("ses_a", event_type, &copy("ses_a"));
    }
    // Rows whose entity cannot be read stay, and stand for nothing.
    for data in [r#"{"sessionID":"ses_a","info":{}}"#, "{", "", r#"{"info":{"id":7}}"#] {
        sample.event("ses_a", "message.updated.1", data);
    }
    sample.sql("INSERT INTO event VALUES ('blob', 'ses_a', 90, 'message.updated.1', x'7b7d')");
    let plan = plan(&sample, &select(&[Class::SupersededEvents]));
    assert_eq!(dropped(&sample, &plan, "event", Class::SupersededEvents), ["evt_ses_a_000001"]);
}

#[test]
fn retention_looks_at_the_last_use() {
    let sample = Sample::v1();
    for (id, days) in [
        ("ses_old_resumed", 1),
        ("ses_old_idle", 60),
        ("ses_new", 0),
        ("ses_future", -400),
        ("ses_archived", 60),
        ("ses_zero", 0),
    ] {
        sample.session("session", id, None, days).user(&format!("msg_{id}"), id, 1);
        sample.part(&format!("prt_{id}"), &format!("msg_{id}"), id, &text("hello"));
    }
    sample.sql("UPDATE session SET time_archived = 1 WHERE id = 'ses_archived'; UPDATE session SET time_updated = 0 WHERE id = 'ses_zero'");
    let plan = plan(&sample, &older_than(14));
    assert_eq!(dropped(&sample, &plan, "session", Class::Sessions), ["ses_old_idle"]);
    assert_eq!(dropped(&sample, &plan, "part", Class::Sessions), ["prt_ses_old_idle"]);
    assert_eq!(
        kept(&plan),
        [
            ("ses_archived".to_owned(), None, KeptReason::Archived),
            ("ses_future".to_owned(), None, KeptReason::LastUseImplausible),
            ("ses_zero".to_owned(), None, KeptReason::LastUseImplausible),
        ]
    );
}

#[test]
fn trees_go_or_stay_as_one() {
    let sample = Sample::v1();
    let rows = [
        ("root_1", None, 60),
        ("child_1", Some("root_1"), 60),
        ("grand_1", Some("child_1"), 0),
        ("root_2", None, 60),
        ("child_2a", Some("root_2"), 60),
        ("child_2b", Some("root_2"), 60),
        ("child_lost", Some("gone_parent"), 60),
        ("loop_a", Some("loop_b"), 60),
        ("loop_b", Some("loop_a"), 60),
    ];
    for (id, parent, days) in rows {
        sample.session("session", id, parent, days).assistant(&format!("msg_{id}"), id, 1);
        sample.part(&format!("prt_{id}"), &format!("msg_{id}"), id, &tool("task", "out"));
        sample.event(id, "session.created.1", &json!({"sessionID": id}).to_string());
    }
    let plan = plan(&sample, &older_than(14));
    let goes = ["child_2a", "child_2b", "root_2"];
    assert_eq!(dropped(&sample, &plan, "session", Class::Sessions), goes);
    assert_eq!(dropped(&sample, &plan, "message", Class::Sessions), goes.map(|id| format!("msg_{id}")));
    assert_eq!(plan.fates["event"].dropped[&Class::Sessions].len(), 3);
    assert_eq!(plan.fates["event_sequence"].dropped[&Class::Sessions].len(), 3);
    assert_eq!(plan.totals[&Class::Sessions].sessions, 3);
    let reported: Vec<_> = kept(&plan).into_iter().map(|(session, _, reason)| (session, reason)).collect();
    assert_eq!(
        reported,
        ["child_lost", "loop_a", "loop_b"].map(|id| (id.to_owned(), KeptReason::BrokenTree))
    );
}

#[test]
fn left_over_is_what_the_log_says_was_deleted() {
    let sample = Sample::both();
    for id in ["ses_both", "ses_deleted", "ses_v1_only"] {
        sample.session("session", id, None, 0).user(&format!("msg_{id}"), id, 1);
        sample.part(&format!("prt_{id}"), &format!("msg_{id}"), id, &text("v1 text"));
    }
    sample.session("session_v2", "ses_both", None, 0);
    sample.row("smg_1", "ses_both", 0, "user", &json!({"text": "v2 text"}));
    sample.event("ses_deleted", "message.updated.1", r#"{"info":{"id":"msg_ses_deleted"}}"#);
    sample.event("ses_deleted", "session.deleted.1", r#"{"sessionID":"ses_deleted"}"#);
    let plan = plan(&sample, &select(&[Class::Leftover]));
    assert_eq!(dropped(&sample, &plan, "session", Class::Leftover), ["ses_deleted"]);
    assert_eq!(dropped(&sample, &plan, "message", Class::Leftover), ["msg_ses_deleted"]);
    assert_eq!(dropped(&sample, &plan, "part", Class::Leftover), ["prt_ses_deleted"]);
    assert_eq!(dropped(&sample, &plan, "event", Class::Leftover), ["evt_ses_deleted_000000"]);
    assert!(!plan.fates.contains_key("session_message"));
    assert!(!plan.fates.contains_key("event_sequence"));
    // A child without evidence keeps its parent's rows.
    sample.session("session", "ses_child", Some("ses_deleted"), 0);
    let again = self::plan(&sample, &select(&[Class::Leftover]));
    assert_eq!(again.fates.len(), 0);
    assert_eq!(kept(&again), [("ses_deleted".to_owned(), None, KeptReason::OnlyCopy)]);
}

#[test]
fn technical_takes_finished_items_of_completed_messages_outside_of_the_newest_turn() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0);
    sample
        .user("m1", "ses_a", 1)
        .assistant("m2", "ses_a", 2)
        .user("m3", "ses_a", 3)
        .assistant("m4", "ses_a", 4);
    sample.part("p1", "m1", "ses_a", &text("question")).part("p2", "m2", "ses_a", &tool("bash", "output"));
    sample.part("p3", "m2", "ses_a", &reasoning("why")).part("p4", "m2", "ses_a", &text("answer"));
    sample.part("p5", "m2", "ses_a", r#"{"type":"patch","hash":"h","files":[]}"#);
    sample.part("p6", "m4", "ses_a", &tool("read", "output"));
    // A part whose message is not there belongs to nobody and stays.
    sample.part("p7", "gone", "ses_a", &tool("read", "output"));
    let bulk = plan(&sample, &select(&[Class::Technical]));
    assert_eq!(dropped(&sample, &bulk, "part", Class::Technical), ["p2", "p3"]);
    assert_eq!(bulk.totals[&Class::Technical].bytes.get(), bytes_of(&sample, "part", &["p2", "p3"]));
    assert_eq!(kept(&bulk), [("ses_a".to_owned(), None, KeptReason::NewestTurn)]);
    let asked = plan(&sample, &Selection { newest_turn: true, ..select(&[Class::Technical]) });
    assert_eq!(dropped(&sample, &asked, "part", Class::Technical), ["p2", "p3", "p6"]);
}

#[test]
fn a_session_with_an_unfinished_newest_turn_is_left_alone() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0).assistant("msg_a", "ses_a", 1);
    for at in 0..4 {
        sample.part(&format!("prt_{at}"), "msg_a", "ses_a", &tool("bash", "output"));
    }
    sample
        .session("session", "ses_busy", None, 0)
        .assistant("msg_b0", "ses_busy", 1)
        .user("msg_u", "ses_busy", 2);
    sample.assistant("msg_b", "ses_busy", 3).part("prt_b0", "msg_b0", "ses_busy", &tool("bash", "done"));
    sample.part("prt_b1", "msg_b", "ses_busy", &running("bash"));
    let classes = select(&[Class::Technical, Class::Events]);
    sample.event("ses_busy", "message.updated.1", r#"{"info":{"id":"msg_b"}}"#);
    let asked = plan(&sample, &Selection { newest_turn: true, ..classes.clone() });
    assert_eq!(dropped(&sample, &asked, "part", Class::Technical), ["prt_0", "prt_1", "prt_2", "prt_3"]);
    assert!(!asked.fates.contains_key("event"));
    assert_eq!(kept(&asked), [("ses_busy".to_owned(), None, KeptReason::Interrupted)]);
    let unlocked = plan(&sample, &Selection { newest_turn: true, interrupted: true, ..classes });
    assert_eq!(
        dropped(&sample, &unlocked, "part", Class::Technical),
        ["prt_0", "prt_1", "prt_2", "prt_3", "prt_b0"]
    );
    assert!(!unlocked.fates.contains_key("event"));
}

#[test]
fn messages_that_cannot_be_judged_stay_with_their_reason() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0);
    let broken: [(&str, &str, KeptReason); 5] = [
        ("unknown", r#"{"type":"hologram"}"#, KeptReason::UnknownKind),
        ("running", &running("bash"), KeptReason::ToolUnfinished),
        ("json", "{\"type\":", KeptReason::Unreadable),
        ("null", "", KeptReason::Unreadable),
        ("status", r#"{"type":"tool","tool":"x","state":{"status":"paused"}}"#, KeptReason::UnknownKind),
    ];
    for (at, (id, data, _)) in broken.iter().enumerate() {
        let at = i64::try_from(at).unwrap();
        sample.assistant(&format!("m_{id}"), "ses_a", at);
        sample.part(&format!("good_{id}"), &format!("m_{id}"), "ses_a", &tool("bash", "output"));
        sample.part(&format!("bad_{id}"), &format!("m_{id}"), "ses_a", data);
    }
    sample.sql("UPDATE part SET data = NULL WHERE id = 'bad_null'");
    sample.message("m_role", "ses_a", 20, r#"{"role":"robot"}"#).part(
        "p_role",
        "m_role",
        "ses_a",
        &tool("bash", "o"),
    );
    sample.message("m_open", "ses_a", 21, r#"{"role":"assistant","time":{"created":1}}"#);
    sample.part("p_open", "m_open", "ses_a", &tool("bash", "o"));
    sample.message("m_bad", "ses_a", 22, "nonsense").part("p_bad", "m_bad", "ses_a", &tool("bash", "o"));
    sample.sql("INSERT INTO message VALUES ('m_utf8', 'ses_a', 23, 23, CAST(x'7b22ff' AS TEXT))");
    sample.sql("INSERT INTO message VALUES ('m_blob', 'ses_a', 24, 24, x'7b7d')");
    sample.part("p_utf8", "m_utf8", "ses_a", &tool("bash", "o")).part(
        "p_blob",
        "m_blob",
        "ses_a",
        &tool("bash", "o"),
    );
    sample.user("m_last", "ses_a", 90).assistant("m_end", "ses_a", 91);
    let plan = plan(&sample, &select(&[Class::Technical, Class::Metadata, Class::Diffs]));
    assert_eq!(plan.fates.len(), 0);
    let mut reasons: BTreeMap<String, KeptReason> =
        broken.iter().map(|(id, _, reason)| (format!("m_{id}"), *reason)).collect();
    for id in ["m_role", "m_bad", "m_utf8", "m_blob"] {
        reasons.insert(id.to_owned(), KeptReason::Unreadable);
    }
    reasons.insert("m_open".to_owned(), KeptReason::NotCompletedAssistant);
    let found: BTreeMap<String, KeptReason> =
        kept(&plan).into_iter().map(|(_, message, reason)| (message.unwrap(), reason)).collect();
    assert_eq!(found, reasons);
    // Incomplete rows need their events.
    sample.event("ses_a", "message.updated.1", r#"{"info":{"id":"m_bad"}}"#);
    let events = self::plan(&sample, &select(&[Class::Events]));
    assert_eq!(events.fates.len(), 0);
    assert_eq!(kept(&events), [("ses_a".to_owned(), None, KeptReason::Unreadable)]);
}

#[test]
fn claims_keep_everything_of_a_session() {
    let classes = select(&[Class::Events, Class::SupersededEvents, Class::Technical, Class::Diffs]);
    let claims = [
        ("UPDATE session SET time_compacting = 1", KeptReason::Compacting),
        ("UPDATE session SET revert = '{}'", KeptReason::RevertStaged),
        ("UPDATE event_sequence SET owner_id = 'other'", KeptReason::OwnedElsewhere),
        (
            "INSERT INTO session_v2 (id, project_id, time_created, time_updated, time_suspended) VALUES ('ses_a', 'p', 1, 1, 1)",
            KeptReason::Executing,
        ),
        ("INSERT INTO session_inbox VALUES ('i', 'ses_a')", KeptReason::InputWaiting),
    ];
    for (sql, reason) in claims {
        let sample = Sample::both();
        sample
            .session("session", "ses_a", None, 30)
            .user("m1", "ses_a", 1)
            .assistant("m2", "ses_a", 2)
            .user("m3", "ses_a", 3);
        sample.part("p", "m2", "ses_a", &tool("bash", "output"));
        for _ in 0..2 {
            sample.event("ses_a", "message.updated.1", r#"{"info":{"id":"m2"}}"#);
        }
        assert_eq!(plan(&sample, &classes).fates.len(), 2, "{sql}");
        sample.sql(sql);
        let plan = plan(&sample, &classes);
        assert_eq!((plan.fates.len(), kept(&plan)), (0, vec![("ses_a".to_owned(), None, reason)]), "{sql}");
        let whole = self::plan(
            &sample,
            &Selection { sessions: vec![SessionId::new("ses_a").unwrap()], ..select(&[Class::Sessions]) },
        );
        assert_eq!((whole.fates.len(), kept(&whole)), (0, vec![("ses_a".to_owned(), None, reason)]), "{sql}");
    }
}

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
fn only_what_the_model_never_gets_again_goes_before_a_compaction() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0);
    sample
        .user("m1", "ses_a", 1)
        .assistant("m2", "ses_a", 2)
        .user("m3", "ses_a", 3)
        .assistant("m4", "ses_a", 4);
    sample.user("m5", "ses_a", 5).part("p5", "m5", "ses_a", r#"{"type":"compaction","auto":true}"#);
    let summary =
        r#"{"role":"assistant","mode":"compaction","summary":true,"time":{"created":6,"completed":7}}"#;
    sample.message("m6", "ses_a", 6, summary);
    sample
        .user("m7", "ses_a", 8)
        .assistant("m8", "ses_a", 9)
        .user("m9", "ses_a", 10)
        .assistant("m10", "ses_a", 11);
    for message in ["m2", "m4", "m8"] {
        sample.part(&format!("p_{message}"), message, "ses_a", &tool("bash", "output"));
    }
    let limited = Selection { before_compaction: true, ..select(&[Class::Technical]) };
    assert_eq!(dropped(&sample, &plan(&sample, &limited), "part", Class::Technical), ["p_m2", "p_m4"]);
    assert_eq!(
        dropped(&sample, &plan(&sample, &select(&[Class::Technical])), "part", Class::Technical),
        ["p_m2", "p_m4", "p_m8"]
    );
    sample.sql(
        r#"UPDATE part SET data = '{"type":"compaction","auto":true,"tail_start_id":"m3"}' WHERE id = 'p5'"#,
    );
    assert_eq!(dropped(&sample, &plan(&sample, &limited), "part", Class::Technical), ["p_m2"]);
    // A tail that is nowhere: nobody knows what is still sent.
    sample.sql(r#"UPDATE part SET data = '{"type":"compaction","auto":true,"tail_start_id":"gone"}' WHERE id = 'p5'"#);
    assert_eq!(plan(&sample, &limited).fates.len(), 0);
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

#[test]
fn fields_are_exact_on_one_page_and_bounds_beyond_it() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0).user("m1", "ses_a", 1).assistant("m2", "ses_a", 2);
    let time = json!({"start": 1, "end": 2, "compacted": 3});
    let small =
        tool_with("bash", "short", &json!({"output": "m".repeat(500)}), &json!({"start": 1, "end": 2}));
    let large = tool_with("bash", &"o".repeat(9000), &json!({"output": "m".repeat(5000)}), &time);
    sample.part("p1", "m2", "ses_a", &small).part("p2", "m2", "ses_a", &tool("bash", "nothing to gain"));
    let classes = [Class::Metadata, Class::Attachments, Class::Compacted];
    let page = plan(&sample, &select(&classes));
    assert_eq!(rewritten(&sample, &page, "part", Class::Metadata), ["p1"]);
    assert_eq!(page.totals[&Class::Metadata].precision, Precision::Exact);
    assert_eq!(page.totals[&Class::Compacted].rows_rewritten, 0);
    sample.part("p3", "m2", "ses_a", &large);
    let bound = plan(&sample, &select(&classes));
    assert_eq!(rewritten(&sample, &bound, "part", Class::Compacted), ["p3"]);
    assert_eq!(bound.totals[&Class::Metadata].precision, Precision::UpperBound);
    let together: u64 = classes.iter().map(|class| bound.totals[class].bytes.get()).sum();
    assert!(together <= bytes_of(&sample, "part", &["p1", "p3"]));
    let exact = plan(&sample, &Selection { exact: true, ..select(&classes) });
    assert_eq!(rewritten(&sample, &exact, "part", Class::Metadata), ["p1", "p3"]);
    assert_eq!(rewritten(&sample, &exact, "part", Class::Compacted), ["p3"]);
    assert_eq!(exact.totals[&Class::Compacted].bytes.get(), 9000);
    assert_eq!(exact.totals[&Class::Attachments].rows_rewritten, 0);
}

#[test]
fn event_rows_stay_where_they_may_be_the_only_copy() {
    let sample = Sample::v1();
    sample
        .session("session", "ses_empty", None, 0)
        .session("session", "ses_full", None, 0)
        .user("m1", "ses_full", 1);
    for session in ["ses_empty", "ses_full", "ses_gone"] {
        for _ in 0..2 {
            sample.event(session, "message.updated.1", r#"{"info":{"id":"m1"}}"#);
        }
    }
    let plan = plan(&sample, &select(&[Class::Events]));
    assert_eq!(
        dropped(&sample, &plan, "event", Class::Events),
        ["evt_ses_full_000000", "evt_ses_full_000001"]
    );
    let reasons = [
        ("ses_empty".to_owned(), None, KeptReason::OnlyCopy),
        ("ses_gone".to_owned(), None, KeptReason::OnlyCopy),
    ];
    assert_eq!(kept(&plan), reasons);
    assert!(!plan.fates.contains_key("event_sequence"));
}

#[test]
fn a_selection_reaches_only_what_it_names() {
    let sample = Sample::v1();
    for (id, days) in [("ses_a", 1), ("ses_b", 20), ("ses_c", 30)] {
        sample.session("session", id, None, days);
        sample.user(&format!("u_{id}"), id, 1).assistant(&format!("a_{id}"), id, 2).user(
            &format!("v_{id}"),
            id,
            3,
        );
        sample.part(&format!("p_{id}"), &format!("a_{id}"), id, &tool("bash", "o"));
    }
    sample.sql("UPDATE session SET project_id = 'prj_b' WHERE id = 'ses_c'");
    let id = |text: &str| SessionId::new(text).unwrap();
    let base = || select(&[Class::Technical]);
    let table: [(&str, Selection, &[&str]); 6] = [
        ("all", base(), &["p_ses_a", "p_ses_b", "p_ses_c"]),
        ("named", Selection { sessions: vec![id("ses_b")], ..base() }, &["p_ses_b"]),
        ("project", Selection { projects: vec!["prj_b".parse().unwrap()], ..base() }, &["p_ses_c"]),
        (
            "age",
            Selection { used_before: Some(UnixMillis::new(NOW - 14 * DAY_MS)), ..base() },
            &["p_ses_b", "p_ses_c"],
        ),
        ("pinned", Selection { pins: vec![id("ses_a"), id("ses_none")], ..base() }, &["p_ses_b", "p_ses_c"]),
        ("keep last", Selection { keep_last: Some(1), ..base() }, &["p_ses_b"]),
    ];
    for (name, selection, expected) in table {
        assert_eq!(
            dropped(&sample, &plan(&sample, &selection), "part", Class::Technical),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_named_session_goes_with_everything_below_it() {
    let sample = Sample::both();
    sample.session("session", "ses_a", None, 0).session("session_v2", "ses_a", None, 0).session(
        "session",
        "ses_b",
        Some("ses_a"),
        0,
    );
    sample.session("session", "ses_c", Some("ses_b"), 0).user("m1", "ses_b", 1).part(
        "p1",
        "m1",
        "ses_c",
        &text("other session"),
    );
    sample.sql("INSERT INTO todo VALUES ('ses_b', 'x', 0)").row(
        "r1",
        "ses_a",
        1,
        "user",
        &json!({"text": "t"}),
    );
    sample.sql("UPDATE session SET time_updated = 0, time_archived = 1");
    let named = |text: &str| Selection {
        sessions: vec![SessionId::new(text).unwrap()],
        ..select(&[Class::Sessions])
    };
    let below = plan(&sample, &named("ses_b"));
    assert_eq!(dropped(&sample, &below, "session", Class::Sessions), ["ses_b", "ses_c"]);
    assert_eq!(dropped(&sample, &below, "part", Class::Sessions), ["p1"]);
    assert_eq!(below.fates["todo"].dropped[&Class::Sessions].len(), 1);
    let all = plan(&sample, &named("ses_a"));
    assert_eq!(dropped(&sample, &all, "session_v2", Class::Sessions), ["ses_a"]);
    assert_eq!(dropped(&sample, &all, "session_message", Class::Sessions), ["r1"]);
    let pinned = plan(&sample, &Selection { pins: vec![SessionId::new("ses_c").unwrap()], ..named("ses_a") });
    assert_eq!((pinned.fates.len(), pinned.kept_count), (0, 3));
}

/// A caller that wants to stop.
struct Cancelled;

impl crate::observer::Observer for Cancelled {
    fn is_cancelled(&self) -> bool {
        true
    }
}

#[test]
fn what_does_not_exist_is_an_error() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0).event("ses_gone", "session.created.1", "{}");
    let failing = |selection: &Selection| {
        compute(&sample.db, &sample.schema(), selection, &Unobserved).unwrap_err().kind
    };
    for id in ["ses_none", "ses_gone"] {
        let selection = Selection { sessions: vec![SessionId::new(id).unwrap()], ..select(&[Class::Events]) };
        assert!(matches!(failing(&selection), PlanErrorKind::UnknownSession(unknown) if unknown == id));
    }
    let project = Selection { projects: vec!["prj_none".parse().unwrap()], ..select(&[Class::Events]) };
    assert!(matches!(failing(&project), PlanErrorKind::UnknownProject(_)));
    assert!(matches!(failing(&select(&[Class::Sessions])), PlanErrorKind::EverySession));
    let cancelled = compute(&sample.db, &sample.schema(), &select(&[Class::Events]), &Cancelled).unwrap_err();
    assert!(matches!(cancelled.kind, PlanErrorKind::Cancelled));
    assert!(sample.db.is_autocommit());
}

#[test]
fn a_plan_inside_a_transaction_leaves_it_open() {
    let sample = growing_copies();
    sample.sql("BEGIN");
    plan(&sample, &select(&[Class::SupersededEvents, Class::Events]));
    assert!(!sample.db.is_autocommit());
}

#[test]
fn files_of_the_user_shrink_and_files_of_the_model_stay() {
    let sample = Sample::v1();
    sample
        .session("session", "ses_a", None, 0)
        .user("m1", "ses_a", 1)
        .assistant("m2", "ses_a", 2)
        .user("m3", "ses_a", 3);
    let file = json!({"type": "file", "mime": "image/png", "url": format!("data:image/png;base64,{}", "A".repeat(1000))}).to_string();
    for (part, message) in [("p1", "m1"), ("p2", "m2"), ("p3", "m3")] {
        sample.part(part, message, "ses_a", &file);
    }
    let plan = plan(&sample, &select(&[Class::Attachments]));
    // m3 has no answer yet: its file is still to be sent.
    assert_eq!(rewritten(&sample, &plan, "part", Class::Attachments), ["p1"]);
}
