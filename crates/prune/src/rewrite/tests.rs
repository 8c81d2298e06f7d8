use super::*;
use crate::decodable::ensure_decodable;
use crate::shapes::{all, data_url, spell};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const FIELDS: [Class; 4] = [Class::Diffs, Class::Metadata, Class::Attachments, Class::Compacted];

fn rewritten(kind: RowKind, data: &str, classes: Classes) -> Option<String> {
    match rewrite(kind, data.as_bytes(), classes).unwrap() {
        Rewrite::Unchanged => None,
        Rewrite::Changed(data) => Some(String::from_utf8(data).unwrap()),
    }
}

fn one(class: Class) -> Classes {
    Classes::NONE.with(class)
}

/// What each class does to each shape, as changes of values: pointer and value, `None` for a member that goes.
type Change = (&'static str, Option<Json>);

fn changes(name: &str, class: Class) -> Vec<Change> {
    let gone = |pointer| (pointer, None);
    match (name, class) {
        ("user with diffs", Class::Diffs) => vec![("/summary/diffs", Some(json!([])))],
        ("bash", Class::Metadata) => vec![gone("/state/metadata/output")],
        ("read", Class::Metadata) => vec![gone("/state/metadata/preview"), gone("/state/metadata/display")],
        ("edit", Class::Metadata) => vec![gone("/state/metadata/diff"), gone("/state/metadata/filediff")],
        ("compacted", Class::Metadata) => vec![gone("/state/metadata/display")],
        ("compacted", Class::Compacted) => {
            vec![("/state/output", Some(json!(""))), gone("/state/attachments")]
        }
        ("compacted", Class::Attachments) => vec![("/state/attachments", Some(json!([])))],
        ("attachments", Class::Attachments) => vec![(
            "/state/attachments",
            Some(
                json!([{"id": "prt_3", "type": "file", "mime": "image/png", "url": "https://example.com/a.png"}]),
            ),
        )],
        ("image", Class::Attachments) => vec![
            ("/type", Some(json!("text"))),
            ("/text", Some(json!("[Attached image/png: shot \"1\".png]"))),
            ("/synthetic", Some(json!(true))),
            gone("/url"),
        ],
        ("plain file", Class::Attachments) => vec![("/url", Some(json!("data:text/plain;base64,")))],
        ("2.x user", Class::Attachments) => {
            vec![("/files", Some(json!([{"uri": "file:///a", "mime": "text/plain"}])))]
        }
        ("2.x assistant", Class::Attachments) => vec![(
            "/content/1/state/content/1",
            Some(json!({"type": "text", "text": "[Attached image/png: a.png]"})),
        )],
        ("2.x assistant", Class::Metadata) => vec![gone("/content/1/state/metadata/output")],
        _ => vec![],
    }
}

fn changed(value: &Json, changes: &[Change]) -> Json {
    let mut value = value.clone();
    for (pointer, change) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match (value.pointer_mut(parent).unwrap(), change) {
            (Json::Object(members), Some(change)) => drop(members.insert(name.into(), change.clone())),
            (Json::Object(members), None) => drop(members.remove(name).unwrap()),
            (Json::Array(items), Some(change)) => items[name.parse::<usize>().unwrap()] = change.clone(),
            (other, _) => panic!("{pointer} in {other}"),
        }
    }
    value
}

#[test]
fn each_class_changes_its_own_field_and_nothing_else() {
    let mut seen = 0;
    for shape in all() {
        for class in FIELDS {
            let wanted = changes(shape.name, class);
            seen += usize::from(!wanted.is_empty());
            for seed in 0..8 {
                let data = spell(&shape.value, seed);
                let found = rewritten(shape.kind, &data, one(class));
                assert_eq!(found.is_some(), !wanted.is_empty(), "{} {class}", shape.name);
                let Some(found) = found else { continue };
                let value: Json = serde_json::from_str(&found).unwrap();
                assert_eq!(value, changed(&shape.value, &wanted), "{} {class} {seed}", shape.name);
            }
        }
    }
    assert_eq!(seen, 13, "each case above belongs to a shape");
}

/// Whether `after` is left when some bytes of `before` are cut out.
fn is_cut_from(before: &str, after: &str) -> bool {
    let mut rest = before.bytes();
    after.bytes().all(|wanted| rest.any(|byte| byte == wanted))
}

#[test]
fn unknown_members_numbers_and_escapes_keep_their_spelling() {
    let long = "x".repeat(200);
    let data = format!(
        r#" {{ "future":{{"n":[1e-7,0.10,12345678901234567890]}}, "type":"tool","callID":"\u0063","tool":"bash","state":{{"status":"completed","input":{{"a":1.0}},"output":"o","title":"t", "metadata":{{ "exit":0 ,"output":"{long}" , "odd":"\/"}},"time":{{"start":1,"end":2.50}}}} }} "#
    );
    let wanted = data.replace(&format!(r#" ,"output":"{long}""#), "");
    assert_eq!(rewritten(RowKind::Part, &data, one(Class::Metadata)), Some(wanted));
}

#[test]
fn what_looks_alike_is_left_alone() {
    let long = "x".repeat(200);
    let inline = data_url("image/png");
    let rows = [
        (
            RowKind::Part,
            format!(
                r#"{{"type":"text","text":"{long}","state":{{"status":"completed","metadata":{{"output":"{long}"}}}}}}"#
            ),
        ),
        (
            RowKind::Part,
            format!(
                r#"{{"type":"tool","state":{{"status":"error","metadata":{{"interrupted":true,"output":"{long}"}}}}}}"#
            ),
        ),
        (
            RowKind::Part,
            format!(
                r#"{{"type":"tool","state":{{"status":"completed","output":"{long}","time":{{"compacted":0}}}}}}"#
            ),
        ),
        (
            RowKind::Part,
            format!(
                r#"{{"type":"tool","state":{{"status":"completed","output":"{long}","time":{{"compacted":null}}}}}}"#
            ),
        ),
        (
            RowKind::Part,
            format!(
                r#"{{"type":"tool","state":{{"status":"completed","metadata":{{"Output":"{long}","results":"{long}"}}}}}}"#
            ),
        ),
        (
            RowKind::Part,
            r#"{"type":"tool","state":{"status":"completed","metadata":{"output":"short"}}}"#.to_owned(),
        ),
        (RowKind::Part, format!(r#"{{"type":"file","mime":"image/png","url":"{inline}","text":"odd"}}"#)),
        (RowKind::Part, format!(r#"{{"type":"file","mime":"image/png","url":"https://a/{long}"}}"#)),
        (RowKind::Message, format!(r#"{{"role":"assistant","summary":{{"diffs":["{long}"]}}}}"#)),
        (RowKind::Message, format!(r#"{{"role":"user","summary":{{"diffs":{{"a":"{long}"}}}}}}"#)),
        (RowKind::SessionMessage, format!(r#"{{"role":"user","summary":{{"diffs":["{long}"]}}}}"#)),
        (RowKind::Part, "7".to_owned()),
    ];
    let every: Classes = Class::ALL.into_iter().collect();
    for (kind, data) in rows {
        assert_eq!(rewritten(kind, &data, every), None, "{data}");
    }
}

#[test]
fn a_row_that_two_readers_could_read_differently_is_refused() {
    let every: Classes = FIELDS.into_iter().collect();
    for data in [
        r#"{"type":"tool","type":"text"}"#,
        r#"{"type":"tool","state":{"status":"completed","status":"error"}}"#,
        r#"{"type":"tool","state":{"status":"completed","metadata":{"output":1,"output":2}}}"#,
        r#"{"type":"tool""#,
        "",
    ] {
        assert!(rewrite(RowKind::Part, data.as_bytes(), every).is_err(), "{data}");
    }
}

proptest! {
    #[test]
    fn rewriting_is_idempotent_decodable_and_only_cuts(index in 0_usize..64, seed in 0_u64..100_000, picks: [bool; 4]) {
        let shapes = all();
        let shape = &shapes[index % shapes.len()];
        let classes: Classes = FIELDS.into_iter().zip(picks).filter(|(_, pick)| *pick).map(|(class, _)| class).collect();
        let data = spell(&shape.value, seed);
        if let Some(found) = rewritten(shape.kind, &data, classes) {
            prop_assert!(found.len() < data.len());
            prop_assert_eq!(rewritten(shape.kind, &found, classes), None);
            prop_assert_eq!(ensure_decodable(shape.kind, shape.row_type, found.as_bytes()), Ok(()));
            // Only the class `attachments` puts anything in.
            prop_assert!(picks[2] || is_cut_from(&data, &found), "{}", found);
        }
    }

    #[test]
    fn nothing_panics_on_any_bytes(bytes: Vec<u8>) {
        for kind in [RowKind::Message, RowKind::Part, RowKind::SessionMessage] {
            drop(rewrite(kind, &bytes, Class::ALL.into_iter().collect()));
        }
    }
}
