use std::collections::BTreeSet;

use serde_json::Value;

use super::directives::Directives;
use super::tools::{Call, call};
use crate::random::filler;

/// What the model says to one request: a pure function of the request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) directives: Directives,
    /// The prompt in force: directives that act once act once for each of these.
    pub(super) prompt: String,
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) prompt_tokens: usize,
}

impl Answer {
    /// Decides by the newest run of user messages and the tool steps done since.
    ///
    /// # Errors
    /// What is wrong with the directives.
    pub(super) fn to(request: &Value) -> Result<Self, String> {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let offered = offered(request);
        if offered.is_empty() {
            // A title or a summary is wanted; directives in old prompts must not start tools there.
            let text = filler(60, "summary");
            return Ok(Self {
                directives: Directives::default(),
                prompt: String::new(),
                reasoning: String::new(),
                text,
                calls: Vec::new(),
                prompt_tokens: 10,
            });
        }
        let last_user = messages.iter().rposition(|message| message["role"] == "user");
        let after = &messages[last_user.map_or(0, |at| at + 1)..];
        let step = after
            .iter()
            .filter(|message| message["role"] == "assistant" && !message["tool_calls"].is_null())
            .count();
        let run = messages[..messages.len() - after.len()].iter().rev();
        let (mut directives, mut prompt) = (None, String::new());
        for message in run.take_while(|message| message["role"] == "user") {
            prompt = text_of(message);
            directives = Directives::parse(&prompt)?;
            if directives.is_some() {
                break;
            }
        }
        let directives = directives.unwrap_or_default();
        let more = step < directives.steps();
        let calls = if more { directives.parallel } else { 0 };
        let text = if more { 0 } else { directives.text };
        let characters: usize = messages.iter().map(|message| text_of(message).len()).sum();
        Ok(Self {
            reasoning: filler(directives.reasoning, &format!("reasoning {step} of {prompt}")),
            text: filler(text, &format!("answer to {prompt}")),
            calls: (0..calls).map(|k| call(&directives, step, k, &offered)).collect(),
            prompt_tokens: directives.usage.unwrap_or(characters / 4),
            directives,
            prompt,
        })
    }
}

/// Names of the tools that a request offers.
pub(super) fn offered(request: &Value) -> BTreeSet<String> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).map(str::to_owned).collect()
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(messages: &Value) -> Value {
        json!({"messages": messages, "tools": [{"function": {"name": "bash"}}]})
    }

    #[test]
    fn a_turn_makes_its_tool_steps_and_then_answers() {
        let user = json!({"role": "user", "content": [{"type": "text", "text": "go [[tools=1 parallel=2 text=40 reasoning=9]]"}]});
        let first = Answer::to(&request(&json!([user]))).unwrap();
        assert_eq!((first.calls.len(), first.text.len(), first.reasoning.len()), (2, 0, 9));
        let step = json!({"role": "assistant", "tool_calls": [{}]});
        let second = Answer::to(&request(&json!([user, step, {"role": "tool", "content": "x"}]))).unwrap();
        assert_eq!((second.calls.len(), second.text.len()), (0, 40));
        assert_ne!(first.reasoning, second.reasoning);
    }

    #[test]
    fn only_the_newest_run_of_user_messages_counts() {
        let old = json!({"role": "user", "content": "[[text=7]]"});
        let reply = json!({"role": "assistant", "content": "ok"});
        let plain = json!({"role": "user", "content": "hello"});
        assert_eq!(Answer::to(&request(&json!([old, reply, plain]))).unwrap().text.len(), 80);
        assert_eq!(Answer::to(&request(&json!([old, plain]))).unwrap().text.len(), 7);
    }

    #[test]
    fn a_request_without_tools_gets_a_short_text() {
        let messages = json!([{"role": "user", "content": "[[tools=3 nonsense]]"}]);
        let answer = Answer::to(&json!({"messages": messages})).unwrap();
        assert_eq!((answer.calls.len(), answer.text.len()), (0, 60));
    }
}
