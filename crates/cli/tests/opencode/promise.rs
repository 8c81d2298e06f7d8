//! What the next request to the model has to be after a class was removed (fact A6): the promise that each class makes.

use serde_json::{Value, json};

use crate::conversation::NEWEST;

/// The classes that leave a session in place.
pub(crate) const CLASSES: [&str; 7] =
    ["superseded-events", "events", "diffs", "metadata", "attachments", "compacted", "technical"];

/// The request of a session without `class`, where an untouched copy of it sends `control`.
pub(crate) fn request_without(class: &str, control: &Value) -> Value {
    let messages = control["messages"].as_array().unwrap();
    let messages = match class {
        "technical" => without_calls(messages),
        "attachments" => without_files(messages),
        _ => messages.clone(),
    };
    let mut request = control.clone();
    request["messages"] = messages.into();
    request
}

/// Checks a request message by message, then whole.
pub(crate) fn assert_promised(name: &str, request: &Value, promised: &Value) {
    let messages = |request: &Value| request["messages"].as_array().unwrap().clone();
    let (told, expected) = (messages(request), messages(promised));
    for (i, (told, expected)) in told.iter().zip(&expected).enumerate() {
        assert_eq!(told, expected, "{name}: message {i} of the history that the model is told");
    }
    assert_eq!(told.len(), expected.len(), "{name}: length of the history");
    assert!(request == promised, "{name}: all else of the request");
}

/// Calls, their results and reasoning vanish before the newest turn; an assistant message that held nothing else vanishes whole. The
/// words of both sides stay.
fn without_calls(messages: &[Value]) -> Vec<Value> {
    let newest = messages.iter().position(|message| message["content"] == NEWEST).unwrap();
    let mut kept = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        if i >= newest {
            kept.push(message.clone());
        } else if message["role"] == "assistant" {
            let mut message = message.clone();
            let members = message.as_object_mut().unwrap();
            members.remove("tool_calls");
            members.remove("reasoning_content");
            if message["content"] != "" && !message["content"].is_null() {
                kept.push(message);
            }
        } else if message["role"] != "tool" && !is_media_of_result(message) {
            kept.push(message.clone());
        }
    }
    kept
}

/// Each inline file of a prompt becomes a note; the media of tool results are not sent.
fn without_files(messages: &[Value]) -> Vec<Value> {
    let mut kept = Vec::new();
    for message in messages.iter().filter(|message| !is_media_of_result(message)) {
        let mut message = message.clone();
        for part in message["content"].as_array_mut().into_iter().flatten() {
            if part["type"] == "image_url" {
                *part = json!({"type": "text", "text": "[Attached image/png: pixel.png]"});
            }
        }
        kept.push(message);
    }
    kept
}

/// OpenCode sends the media of tool results as a user message of its own.
fn is_media_of_result(message: &Value) -> bool {
    message["content"][0]["text"] == "Attached media from tool result:"
}
