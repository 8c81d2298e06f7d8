use super::*;
use crate::shapes::{assistant_row, spell};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

#[test]
fn items_are_listed_with_their_bytes() {
    let data = r#"{"content": [ {"type":"reasoning","text":"x"} ,{"type":"tool","name":"sh","state":{"status":"error"}},{"type":"odd"},7]}"#;
    let items = assistant_items(data.as_bytes()).unwrap();
    let seen: Vec<_> =
        items.iter().map(|item| (item.index, item.kind.name(), item.tool.as_deref(), item.status)).collect();
    assert_eq!(
        seen,
        [
            (0, "reasoning", None, None),
            (1, "tool", Some("sh"), Some(ToolStatus::Error)),
            (2, "odd", None, None),
            (3, "", None, None)
        ]
    );
    assert_eq!(&data[items[0].range.clone()], r#"{"type":"reasoning","text":"x"}"#);
    assert_eq!(&data[content_range(data.as_bytes()).unwrap()], &data[12..data.len() - 1]);
}

#[test]
fn rows_without_one_content_array_are_refused() {
    let kind = |data: &str| assistant_items(data.as_bytes()).map_err(|error| error.kind);
    assert_eq!(kind("{}"), Err(RowErrorKind::NoContent));
    assert_eq!(kind("[]"), Err(RowErrorKind::NoContent));
    assert_eq!(kind(r#"{"content":{}}"#), Err(RowErrorKind::NoContent));
    assert_eq!(kind(r#"{"content":[],"c\u006fntent":[]}"#), Err(RowErrorKind::RepeatedKey));
    assert_eq!(kind(r#"{"content":[{"type":"tool","type":"text"}]}"#), Err(RowErrorKind::RepeatedKey));
    assert!(matches!(kind(r#"{"content":[{"type":"te"#), Err(RowErrorKind::Json(_))));
    assert!(matches!(kind(r#"{"content":[]} x"#), Err(RowErrorKind::Json(_))));
}

/// The row of a public report: numbers, escapes and unknown members keep their spelling.
#[test]
fn what_stays_keeps_its_bytes() {
    let kept = r#"{"type":"text","text":"Built. \u00e4\u4f60"}"#;
    let head = r#"{"time":{"created":1790000000001,"completed":1790000000009},"futureField":{"k":[1,2,{"z":null}]},"content":["#;
    let tail = r#"],"cost":1e-7,"ratio":0.10,"big":12345678901234567890,"finish":"stop"}"#;
    let data = format!(
        r#"{head}{{"type":"reasoning","text":"think"}},{{"type":"tool","id":"c","name":"bash","state":{{"status":"completed","input":{{}},"content":[]}}}},{kept}{tail}"#
    );
    let all: Vec<_> = assistant_items(data.as_bytes()).unwrap().iter().map(decide::Item::from).collect();
    assert_eq!(removable(Author::Assistant { is_completed: true }, all), Ok(vec![0, 1]));
    let left = remove_items(data.as_bytes(), &[1, 0]).unwrap();
    assert_eq!(String::from_utf8(left).unwrap(), format!("{head}{kept}{tail}"));
}

#[test]
fn what_never_goes_is_refused() {
    let data = r#"{"content":[{"type":"text"},{"type":"tool","state":{"status":"running"}},{"type":"odd"},{"type":"reasoning"}]}"#;
    let kind = |index| remove_items(data.as_bytes(), &[3, index]).map_err(|error| error.kind);
    for index in 0..3 {
        assert_eq!(kind(index), Err(RowErrorKind::NotRemovable(index)));
    }
    assert_eq!(kind(4), Err(RowErrorKind::NoSuchItem(4)));
    assert_eq!(kind(u32::MAX), Err(RowErrorKind::NoSuchItem(u32::MAX)));
    assert!(kind(3).is_ok());
}

#[test]
fn a_message_gives_all_its_finished_items_or_none() {
    let done = Author::Assistant { is_completed: true };
    let items = |list: &[(PartKind, Option<ToolStatus>)]| {
        list.iter().map(|(kind, status)| decided(kind, *status)).collect::<Vec<_>>()
    };
    let tool = |status| (PartKind::Tool, Some(status));
    let text = (PartKind::Text, None);
    assert_eq!(
        removable(
            done,
            items(&[
                text.clone(),
                tool(ToolStatus::Completed),
                (PartKind::Patch, None),
                (PartKind::Reasoning, None)
            ])
        ),
        Ok(vec![1, 3])
    );
    assert_eq!(removable(done, []), Ok(vec![]));
    let cases = [
        (tool(ToolStatus::Running), KeptReason::ToolUnfinished),
        (tool(ToolStatus::Pending), KeptReason::ToolUnfinished),
        (tool(ToolStatus::Streaming), KeptReason::ToolUnfinished),
        ((PartKind::Tool, None), KeptReason::ToolUnfinished),
        (tool(ToolStatus::Unknown), KeptReason::UnknownKind),
        ((PartKind::Unknown("x".into()), None), KeptReason::UnknownKind),
    ];
    for (item, reason) in cases {
        assert_eq!(removable(done, items(&[tool(ToolStatus::Error), item.clone()])), Err(reason), "{item:?}");
    }
    let open = Author::Assistant { is_completed: false };
    assert_eq!(removable(open, items(&[tool(ToolStatus::Error)])), Err(KeptReason::NotCompletedAssistant));
}

fn content() -> impl Strategy<Value = Vec<Json>> {
    let template = assistant_row()["content"].as_array().unwrap().clone();
    proptest::collection::vec(proptest::sample::select(template), 0..7)
}

proptest! {
    #[test]
    fn removal_is_what_the_values_say_and_touches_no_other_byte(items in content(), seed in 0_u64..200, picks: [bool; 7]) {
        let value = json!({"time": {"created": 1, "completed": 2}, "x": 1.5, "content": items});
        let data = spell(&value, seed);
        let removable: Vec<bool> = items.iter().map(|item| item["type"] != "text").collect();
        let goes = |index: usize| picks[index] && removable[index];
        let indexes: Vec<u32> = (0..items.len()).filter(|index| goes(*index)).map(|index| u32::try_from(index).unwrap()).collect();
        let left = String::from_utf8(remove_items(data.as_bytes(), &indexes).unwrap()).unwrap();

        let mut wanted = value.clone();
        let mut place = 0;
        wanted["content"].as_array_mut().unwrap().retain(|_| { place += 1; !goes(place - 1) });
        prop_assert_eq!(serde_json::from_str::<Json>(&left).unwrap(), wanted);

        let before = assistant_items(data.as_bytes()).unwrap();
        let after = assistant_items(left.as_bytes()).unwrap();
        let kept: Vec<_> = before.iter().filter(|item| !goes(item.index as usize)).map(|item| &data[item.range.clone()]).collect();
        let found: Vec<_> = after.iter().map(|item| &left[item.range.clone()]).collect();
        prop_assert_eq!(kept, found);
        let (old, new) = (content_range(data.as_bytes()).unwrap(), content_range(left.as_bytes()).unwrap());
        prop_assert_eq!(&data[..old.start], &left[..new.start]);
        prop_assert_eq!(&data[old.end..], &left[new.end..]);
    }

    #[test]
    fn nothing_panics_on_any_bytes(bytes: Vec<u8>, indexes: Vec<u32>) {
        drop(remove_items(&bytes, &indexes));
    }
}

#[test]
fn one_pass_removes_what_the_three_steps_remove() {
    let done = r#"{"type":"tool","id":"c","name":"bash","state":{"status":"completed","input":{}}}"#;
    let running = r#"{"type":"tool","id":"c","name":"bash","state":{"status":"running","input":{}}}"#;
    let text = r#"{"type":"text","text":"kept \u00e9"}"#;
    let thought = r#"{"type":"reasoning","text":"gone"}"#;
    let author = Author::Assistant { is_completed: true };
    for items in [
        vec![],
        vec![text],
        vec![thought],
        vec![done, text, thought],
        vec![text, done, done, text],
        vec![text, running, thought],
        vec![r#"{"type":"new kind"}"#, done],
    ] {
        let data = format!(r#"{{"time":{{"completed":1}}, "content" : [ {} ] ,"x":1e2}}"#, items.join(" , "));
        let data = data.as_bytes();
        let found = assistant_items(data).unwrap();
        let by_steps = match removable(author, found.iter().map(decide::Item::from)) {
            Ok(indexes) if !indexes.is_empty() => Some(remove_items(data, &indexes).unwrap()),
            _ => None,
        };
        assert_eq!(remove_technical(author, data).unwrap(), by_steps, "{}", String::from_utf8_lossy(data));
    }
    let unfinished = Author::Assistant { is_completed: false };
    let data = format!(r#"{{"content":[{done}]}}"#);
    assert_eq!(remove_technical(unfinished, data.as_bytes()).unwrap(), None);
    assert!(remove_technical(author, b"{}").is_err());
}
