//! Whole sessions and their trees.

use super::*;

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
        ("pinned", Selection { pins: vec![id("ses_a")], ..base() }, &["p_ses_b", "p_ses_c"]),
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
