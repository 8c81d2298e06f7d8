use super::*;
use crate::rewrite::RowKind;
use crate::shapes::{all, spell};
use proptest::prelude::*;

/// Whether each prefix answers as the whole does, or asks for more, and once decided stays decided.
fn agree<T: PartialEq + std::fmt::Debug>(name: &str, data: &str, ask: impl Fn(&[u8], bool) -> Facts<T>) {
    let whole = ask(data.as_bytes(), true);
    assert_ne!(whole, Facts::NeedMore, "{name}: {data}");
    let mut decided = false;
    for cut in 0..=data.len() {
        let found = ask(&data.as_bytes()[..cut], false);
        if decided || found != Facts::NeedMore {
            assert_eq!(found, whole, "{name} cut at {cut}: {data}");
            decided = true;
        }
    }
    assert!(decided, "{name} undecided: {data}");
}

#[test]
fn every_prefix_answers_as_the_whole_or_asks_for_more() {
    for shape in all() {
        for seed in 0..6 {
            let data = spell(&shape.value, seed);
            match shape.kind {
                RowKind::Part => agree(shape.name, &data, part_facts),
                RowKind::Message => agree(shape.name, &data, message_facts),
                RowKind::SessionMessage => {}
            }
            agree(shape.name, &data, completion);
            let copy = spell(
                &serde_json::json!({"sessionID": "ses_1", "part": {"id": "prt_1", "x": shape.value}, "time": 1}),
                seed,
            );
            agree(shape.name, &copy, |prefix, whole| event_entity("message.part.updated.1", prefix, whole));
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics_on_any_bytes(bytes: Vec<u8>, whole: bool) {
        drop((part_facts(&bytes, whole), message_facts(&bytes, whole), completion(&bytes, whole)));
        drop(event_entity("message.updated.1", &bytes, whole));
    }

    #[test]
    fn json_like_bytes_agree_at_every_cut(text in r#"\{("(type|tool|state|status|x)":("tool"|"text"|\{"status":"(error|running)"\}|[0-9]{1,3}|true),?){0,4}\}"#) {
        let whole = part_facts(text.as_bytes(), true);
        for cut in 0..text.len() {
            let found = part_facts(&text.as_bytes()[..cut], false);
            prop_assert!(found == Facts::NeedMore || found == whole, "{} {}", cut, text);
        }
    }
}

fn known(part: &str) -> PartFacts {
    part_facts(part.as_bytes(), true).known().unwrap()
}

#[test]
fn parts_are_told_apart() {
    let running =
        known(r#"{"state":{"input":{"status":"x"},"status":"running"},"tool":"bash","type":"tool"}"#);
    assert_eq!(
        running,
        PartFacts { kind: PartKind::Tool, tool: Some("bash".into()), status: Some(ToolStatus::Running) }
    );
    assert_eq!(
        known(r#"{"tool":"bash","type":"text"}"#),
        PartFacts { kind: PartKind::Text, tool: None, status: None }
    );
    assert_eq!(known(r#"{"type":"hologram"}"#).kind, PartKind::Unknown("hologram".into()));
    assert_eq!(known(r#"{"type":7}"#).kind, PartKind::Unknown("".into()));
    assert_eq!(known("{}").kind, PartKind::Unknown("".into()));
    assert_eq!(known(r#"{"type":"tool","tool":"x","state":7}"#).status, None);
    assert_eq!(
        known(r#"{"type":"tool","tool":"x","state":{"status":"odd"}}"#).status,
        Some(ToolStatus::Unknown)
    );
    for name in ["text", "reasoning", "tool", "step-start", "patch", "file", "retry", "other"] {
        assert_eq!(PartKind::from_part_type(name).name(), name);
    }
    for bad in ["", "[]", "7", r#"{"type":"tool""#, "{\"type\":\"te\u{1}xt\"}", "\u{feff}{}"] {
        assert_eq!(part_facts(bad.as_bytes(), true), Facts::Unreadable, "{bad}");
    }
}

#[test]
fn a_short_prefix_of_a_real_part_decides() {
    let part = format!(
        r#"{{"type":"tool","callID":"c","tool":"bash","state":{{"status":"completed","input":{{"command":"{}"#,
        "x".repeat(500)
    );
    let decided = part.find(r#""input"#).unwrap();
    assert!(matches!(part_facts(&part.as_bytes()[..decided], false), Facts::Known(_)));
    assert_eq!(part_facts(&part.as_bytes()[..40], false), Facts::NeedMore);
}

#[test]
fn messages_are_told_apart() {
    let facts = |json: &str| message_facts(json.as_bytes(), true).known().unwrap();
    let user = r#"{"role":"user","summary":{"diffs": [ {"file":"a"}]},"time":{"completed":5}}"#;
    let found = facts(user);
    assert_eq!((found.role, found.completed), (Role::User, None));
    assert_eq!(&user[..found.diffs.unwrap()], r#"{"role":"user","summary":{"diffs": ["#);
    assert_eq!(facts(r#"{"role":"user","summary":{"diffs":[ ]}}"#).diffs, None);
    assert_eq!(
        facts(r#"{"role":"user","summary":true}"#),
        MessageFacts { role: Role::User, completed: None, is_summary: false, has_error: false, diffs: None }
    );
    let done = facts(
        r#"{"role":"assistant","summary":true,"time":{"created":1,"completed":1790000000009},"error":null}"#,
    );
    assert_eq!(done.completed.map(headwater_model::UnixMillis::get), Some(1_790_000_000_009));
    assert!(done.is_summary && !done.has_error);
    assert!(facts(r#"{"role":"assistant","error":{"name":"x"}}"#).has_error);
    assert_eq!(facts(r#"{"role":"assistant","time":{"completed":"soon"}}"#).completed, None);
    assert_eq!(
        facts(r#"{"role":"assistant","time":{"completed":1.79e12}}"#)
            .completed
            .map(headwater_model::UnixMillis::get),
        Some(1_790_000_000_000)
    );
    assert_eq!(facts(r#"{"role":"system"}"#).role, Role::Unknown);
}

#[test]
fn a_user_message_is_decided_at_its_first_diff() {
    let head = r#"{"role":"user","time":{"created":1},"summary":{"diffs":[{"#;
    assert!(
        matches!(message_facts(head.as_bytes(), false), Facts::Known(MessageFacts { diffs: Some(56), .. })),
        "{head}"
    );
}

#[test]
fn events_name_the_entity_they_copy() {
    let entity = |event_type: &str, json: &str| event_entity(event_type, json.as_bytes(), false);
    let known = |kind, id: &str| Facts::Known(Some(Entity { kind, id: id.into() }));
    assert_eq!(
        entity("message.part.updated.1", r#"{"sessionID":"s","part":{"id":"prt_1","#),
        known(EntityKind::Part, "prt_1")
    );
    assert_eq!(
        entity("message.updated.1", r#"{"info":{"x":{"id":"no"},"id":"msg_1""#),
        known(EntityKind::Message, "msg_1")
    );
    assert_eq!(
        entity("session.updated.1", r#"{"sessionID":"s","info":{"id":"ses_1"}"#),
        known(EntityKind::Session, "ses_1")
    );
    assert_eq!(entity("session.created.1", "not read"), Facts::Known(None));
    assert_eq!(entity("message.part.updated.2", "not read"), Facts::Known(None));
    assert_eq!(entity("message.updated.1", r#"{"info":{"id":""}}"#), Facts::Known(None));
    assert_eq!(entity("message.updated.1", r#"{"info":7}"#), Facts::Known(None));
    assert_eq!(entity("message.updated.1", r#"{"info":{"id":"msg"#), Facts::NeedMore);
    assert_eq!(entity("message.updated.1", "]"), Facts::Unreadable);
}
