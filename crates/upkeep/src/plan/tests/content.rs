//! Messages and parts of 1.x.

use super::*;

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
fn fields_are_exact_in_rows_that_are_read_and_bounds_beyond_them() {
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
    // Of several pages, and nothing to gain in one of them: it is read, so nothing is claimed of it.
    sample.part("p3", "m2", "ses_a", &large).part("p4", "m2", "ses_a", &tool("bash", &"n".repeat(60_000)));
    let near = plan(&sample, &select(&classes));
    let exact = |sample: &Sample| {
        plan(sample, &Selection { figures: crate::plan::Figures::Exact, ..select(&classes) })
    };
    assert_eq!(rewritten(&sample, &near, "part", Class::Metadata), ["p1", "p3"]);
    assert_eq!(rewritten(&sample, &near, "part", Class::Compacted), ["p3"]);
    assert_eq!(near.totals[&Class::Compacted].bytes.get(), 9000);
    assert_eq!(near.totals[&Class::Attachments].rows_rewritten, 0);
    assert_eq!(near.totals, exact(&sample).totals);
    assert!(near.totals.values().all(|total| total.precision == Precision::Exact));
    // A rebuild reads none of them: it rewrites what may have something to lose, and measures.
    let rough = plan(&sample, &Selection { figures: crate::plan::Figures::Rough, ..select(&classes) });
    assert_eq!(rewritten(&sample, &rough, "part", Class::Metadata), ["p1", "p3", "p4"]);
    assert_eq!(rough.totals[&Class::Metadata].precision, Precision::UpperBound);
    // Too large to be read for a preview.
    let huge = tool_with("bash", &"o".repeat(300_000), &json!({"output": "m".repeat(5000)}), &time);
    sample.part("p5", "m2", "ses_a", &huge);
    let bound = plan(&sample, &select(&classes));
    assert_eq!(rewritten(&sample, &bound, "part", Class::Compacted), ["p3", "p5"]);
    assert_eq!(bound.totals[&Class::Metadata].precision, Precision::UpperBound);
    let rows = bytes_of(&sample, "part", &["p1", "p3", "p5"]);
    assert!(bound.totals.values().all(|total| total.bytes.get() <= rows), "each is a bound of its own");
    let exact = exact(&sample);
    assert_eq!(exact.totals[&Class::Compacted].bytes.get(), 309_000);
    assert!(classes.iter().all(|class| exact.totals[class].bytes <= bound.totals[class].bytes));
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
