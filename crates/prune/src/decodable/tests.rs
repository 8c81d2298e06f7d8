use super::*;
use crate::shapes::{all, spell};
use serde_json::Value as Json;

#[test]
fn every_shape_that_opencode_writes_decodes() {
    for shape in all() {
        for seed in 0..4 {
            let data = spell(&shape.value, seed);
            assert_eq!(
                ensure_decodable(shape.kind, shape.row_type, data.as_bytes()),
                Ok(()),
                "{}",
                shape.name
            );
        }
    }
}

/// Members that OpenCode's schemas require, by the name of the shape.
const REQUIRED: [(&str, &[&str]); 27] = [
    ("text", &["/type", "/text"]),
    ("reasoning", &["/text", "/time", "/time/start"]),
    ("step-finish", &["/reason", "/cost", "/tokens"]),
    ("patch", &["/hash", "/files"]),
    ("image", &["/mime", "/url"]),
    ("compaction", &["/auto"]),
    ("subtask", &["/prompt", "/description", "/agent"]),
    ("agent", &["/name"]),
    ("snapshot", &["/snapshot"]),
    ("retry", &["/attempt", "/error", "/time"]),
    ("pending", &["/callID", "/tool", "/state", "/state/status", "/state/input", "/state/raw"]),
    ("running", &["/state/input", "/state/time", "/state/time/start"]),
    ("error", &["/state/input", "/state/error", "/state/time", "/state/time/end"]),
    (
        "bash",
        &[
            "/state/input",
            "/state/output",
            "/state/title",
            "/state/metadata",
            "/state/time/start",
            "/state/time/end",
        ],
    ),
    ("attachments", &["/state/attachments/0/mime", "/state/attachments/0/url", "/state/attachments/0/type"]),
    (
        "user with diffs",
        &["/role", "/time", "/time/created", "/agent", "/model", "/model/modelID", "/summary/diffs"],
    ),
    (
        "assistant",
        &[
            "/parentID",
            "/modelID",
            "/providerID",
            "/mode",
            "/agent",
            "/path/cwd",
            "/path/root",
            "/cost",
            "/tokens",
            "/tokens/cache",
        ],
    ),
    ("2.x user", &["/time/created", "/text"]),
    (
        "2.x assistant",
        &[
            "/agent",
            "/model/id",
            "/content",
            "/content/0/text",
            "/content/1/id",
            "/content/1/name",
            "/content/1/state",
            "/content/1/state/status",
            "/content/1/state/input",
            "/content/1/state/content",
            "/content/1/state/content/1/uri",
            "/content/1/time/created",
            "/content/2/state/error",
            "/content/2/state/error/message",
            "/content/3/type",
        ],
    ),
    ("2.x system", &["/text"]),
    ("2.x skill", &["/skill", "/name", "/text"]),
    ("2.x shell", &["/shellID", "/command", "/status"]),
    ("2.x compaction", &["/status", "/reason", "/summary", "/recent"]),
    ("2.x failed compaction", &["/error", "/error/type"]),
    ("2.x idle", &["/outcome"]),
    ("2.x model", &["/model", "/model/providerID"]),
    ("2.x location", &["/location"]),
];

fn without(value: &Json, pointer: &str) -> Json {
    let mut value = value.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    value
}

#[test]
fn each_required_member_is_missed() {
    let shapes = all();
    for (name, pointers) in REQUIRED {
        let shape = shapes.iter().find(|shape| shape.name == name).unwrap();
        for pointer in pointers {
            let mut odd = shape.value.clone();
            *odd.pointer_mut(pointer).unwrap() = Json::Null;
            for broken in [without(&shape.value, pointer), odd] {
                let data = broken.to_string();
                let found = ensure_decodable(shape.kind, shape.row_type, data.as_bytes());
                assert!(matches!(found, Err(Undecodable::Member(_))), "{name} {pointer}: {found:?}");
                let worse = ensure_not_worse(
                    shape.kind,
                    shape.row_type,
                    shape.value.to_string().as_bytes(),
                    data.as_bytes(),
                );
                assert!(worse.is_err(), "{name} {pointer}");
                let same = ensure_not_worse(shape.kind, shape.row_type, data.as_bytes(), data.as_bytes());
                assert_eq!(same, Ok(()), "{name} {pointer}");
            }
        }
    }
}

#[test]
fn unknown_types_and_empty_results_do_not_decode() {
    let cases = [
        (RowKind::Part, None, r#"{"type":"hologram"}"#),
        (RowKind::Part, None, "[]"),
        (RowKind::Message, None, r#"{"role":"system","time":{"created":1}}"#),
        (RowKind::SessionMessage, None, r#"{"time":{"created":1}}"#),
        (RowKind::SessionMessage, Some("hologram"), r#"{"time":{"created":1}}"#),
        (
            RowKind::SessionMessage,
            Some("assistant"),
            r#"{"time":{"created":1},"agent":"a","model":{"id":"m","providerID":"p"},"content":[{"type":"tool","id":"c","name":"n","time":{"created":1},"state":{"status":"completed","input":{},"content":[]}}]}"#,
        ),
    ];
    for (kind, row_type, data) in cases {
        let found = ensure_decodable(kind, row_type, data.as_bytes());
        assert!(matches!(found, Err(Undecodable::Member(_))), "{data}: {found:?}");
    }
    let cut = ensure_decodable(RowKind::Part, None, br#"{"type":"te"#);
    assert!(matches!(cut, Err(Undecodable::Unreadable(_))), "{cut:?}");
}

#[test]
fn a_second_fault_of_the_same_kind_is_worse() {
    let one = br#"{"type":"tool","callID":"c","tool":"t","state":{"status":"completed","input":{},"output":"","title":"","metadata":{},"time":{"start":1,"end":2},"attachments":[{"type":"file","mime":"m"}]}}"#;
    let two = String::from_utf8(one.to_vec())
        .unwrap()
        .replace(r#"{"type":"file","mime":"m"}"#, r#"{"type":"file","mime":"m"},{"type":"file","mime":"m"}"#);
    assert_eq!(ensure_not_worse(RowKind::Part, None, one, one), Ok(()));
    assert!(ensure_not_worse(RowKind::Part, None, one, two.as_bytes()).is_err());
    assert!(ensure_not_worse(RowKind::Part, None, b"not json", one).is_err());
}
