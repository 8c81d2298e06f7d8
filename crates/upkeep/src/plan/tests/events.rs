//! Event rows.

use super::*;

/// Live sessions whose log holds every intermediate copy, some of them equal byte for byte.
pub(super) fn growing_copies() -> Sample {
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
