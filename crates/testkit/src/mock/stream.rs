use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::Answer;
use super::{Shared, http};

/// Characters of one streamed piece.
const PIECE: usize = 32;

/// Writes the answer to `request`, the `number`-th of this provider.
pub(super) fn answer(
    stream: &mut TcpStream,
    shared: &Shared,
    request: &Value,
    number: usize,
) -> io::Result<()> {
    let answer = match Answer::to(request) {
        Ok(answer) => answer,
        Err(reason) => return refuse(stream, 400, &reason),
    };
    let directives = &answer.directives;
    let first = shared.lock().answered.insert(answer.prompt.clone());
    shared.pause(seconds(directives.stall))?;
    if let Some(status) = directives.http.or(directives.http_once.filter(|_| first)) {
        return refuse(stream, status, "asked for");
    }
    http::begin_events(stream)?;
    let mut out = Chunks { stream, model: request["model"].clone(), number };
    out.delta(&json!({"role": "assistant"}))?;
    let pieces = pieces(&answer);
    let between =
        seconds(directives.delay).div_f64(f64::from(u32::try_from(pieces.len().max(1)).unwrap_or(u32::MAX)));
    let middle = pieces.len() / 2;
    for (i, (field, piece)) in pieces.iter().enumerate() {
        if i == middle {
            if directives.cut && first {
                return Ok(());
            }
            if let Some(name) = &directives.hold {
                shared.hold(name)?;
            }
        }
        out.delta(&json!({*field: piece}))?;
        if !between.is_zero() {
            shared.pause(between)?;
        }
    }
    if directives.hang {
        loop {
            out.stream.write_all(b": still here\n\n")?;
            shared.pause(Duration::from_millis(200))?;
        }
    }
    for (k, call) in answer.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        let id = format!("call_{number}_{k}");
        out.delta(
            &json!({"tool_calls": [{"index": k, "id": id, "type": "function", "function": function}]}),
        )?;
    }
    out.finish(if answer.calls.is_empty() { "stop" } else { "tool_calls" })?;
    out.usage(answer.prompt_tokens, (answer.reasoning.len() + answer.text.len()) / 4 + 1)
}

fn refuse(stream: &mut TcpStream, status: u16, reason: &str) -> io::Result<()> {
    let body = json!({"error": {"message": format!("mock provider: {reason}"), "type": "mock_error"}});
    http::reply(stream, status, &body.to_string())
}

/// The streamed pieces of an answer, as (member of the delta, text).
fn pieces(answer: &Answer) -> Vec<(&'static str, &str)> {
    let mut pieces = Vec::new();
    for (field, text) in [("reasoning_content", &answer.reasoning), ("content", &answer.text)] {
        // Filler is ASCII, so every byte is a character boundary.
        let starts = (0..text.len()).step_by(PIECE);
        pieces.extend(starts.map(|start| (field, &text[start..text.len().min(start + PIECE)])));
    }
    pieces
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

struct Chunks<'a> {
    stream: &'a mut TcpStream,
    model: Value,
    number: usize,
}

impl Chunks<'_> {
    fn delta(&mut self, delta: &Value) -> io::Result<()> {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null)
    }

    fn finish(&mut self, reason: &str) -> io::Result<()> {
        self.chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]), &Value::Null)
    }

    fn usage(&mut self, prompt: usize, completion: usize) -> io::Result<()> {
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
        self.chunk(&json!([]), &usage)?;
        http::event(self.stream, "[DONE]")
    }

    fn chunk(&mut self, choices: &Value, usage: &Value) -> io::Result<()> {
        let id = format!("mock-{}", self.number);
        let mut chunk = json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": self.model, "choices": choices});
        if !usage.is_null() {
            chunk["usage"] = usage.clone();
        }
        http::event(self.stream, &chunk.to_string())
    }
}
