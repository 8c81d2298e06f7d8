//! Rows of the 2.x layout, as the `/api/session` routes of OpenCode 1.18 write them (fact A11): the nearest that the real program comes
//! to 2.x.

use headwater_testkit::opencode::OpenCode;
use headwater_testkit::rows::Rows;
use serde_json::Value;

use crate::conversation::NEWEST;
use crate::headwater::Headwater;
use crate::promise::{assert_promised, request_without};

const NEXT: &str = "go on [[text=20]]";

#[test]
fn technical_content_leaves_2x_rows_that_the_model_is_told_without() {
    let mut opencode = OpenCode::start();
    let headwater = Headwater::beside(&opencode);
    let [control, live, stopped, rebuilt] = [(); 4].map(|()| write(&opencode));
    headwater.run_when_settled(&prune(&live));
    let told = request(&opencode, &live);
    opencode.stop();
    for (verb, session) in [("prune", &stopped), ("rebuild", &rebuilt)] {
        let before = Rows::read(&opencode.database());
        let mut arguments = prune(session);
        if verb == "rebuild" {
            // So small a gain is not worth a rebuild of its own.
            arguments.push("--force");
        }
        arguments[0] = verb;
        headwater.run_when_settled(&arguments);
        let after = Rows::read(&opencode.database());
        let changes = before.changes(&after);
        assert!(changes.len() >= 3, "{verb}: {changes:?}");
        for line in &changes {
            assert!(
                line.starts_with("session_message '") && line.ends_with(": changed data"),
                "{verb}: {line}"
            );
        }
        let others = before.without_session(session).changes(&after.without_session(session));
        assert_eq!(others, Vec::<String>::new(), "{verb}: the rows of other sessions");
    }
    opencode.restart();
    let untouched = opencode.v2_messages(&control);
    let promised = numbered(request_without("technical", &request(&opencode, &control)));
    assert_promised("pruned beside the server", &numbered(told), &promised);
    for (way, session) in [("stopped", &stopped), ("rebuilt", &rebuilt)] {
        let messages = opencode.v2_messages(session);
        assert_eq!(messages.len(), untouched.len(), "{way}: every row is there");
        assert_eq!(texts(&messages), texts(&untouched), "{way}: every word is there");
        assert_promised(way, &numbered(request(&opencode, session)), &promised);
    }
}

fn prune(session: &str) -> Vec<&str> {
    vec!["prune", "--class", "technical", "--session", session, "--yes"]
}

/// The same conversation each time.
fn write(opencode: &OpenCode) -> String {
    let session = opencode.new_v2_session();
    for prompt in
        ["look [[reasoning=80 tools=2 parallel=2 out=900 text=70]]", "miss [[tools=1 fail text=50]]", NEWEST]
    {
        opencode.say_v2(&session, prompt);
    }
    session
}

/// What the model is told next.
fn request(opencode: &OpenCode, session: &str) -> Value {
    opencode.provider().reset();
    opencode.say_v2(session, NEXT);
    opencode.provider().last().unwrap()
}

/// A request with its call ids numbered in their order: the model gives them out over all sessions.
fn numbered(mut request: Value) -> Value {
    number_calls(&mut request["messages"], &mut Vec::new());
    request
}

fn number_calls(value: &mut Value, seen: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with("call_") => {
            let known = seen.iter().position(|id| id == text);
            let number = known.unwrap_or_else(|| {
                seen.push(text.clone());
                seen.len() - 1
            });
            *text = format!("call {number}");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| number_calls(item, seen)),
        Value::Object(members) => members.values_mut().for_each(|member| number_calls(member, seen)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The words of both sides, in order.
fn texts(messages: &[Value]) -> Vec<String> {
    let mut texts = Vec::new();
    for message in messages {
        texts.extend(message["text"].as_str().map(str::to_owned));
        let items = message["content"].as_array().into_iter().flatten();
        let items = items.filter(|item| item["type"] == "text");
        texts.extend(items.map(|item| item["text"].as_str().unwrap().to_owned()));
    }
    texts
}
