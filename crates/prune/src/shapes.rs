//! Rows as OpenCode writes them (facts A3, B2), and other spellings of the same values. For tests.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::rewrite::RowKind;

/// A row with the name that a failing assertion prints.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) kind: RowKind,
    pub(crate) row_type: Option<&'static str>,
    pub(crate) value: Value,
}

/// Text that is long enough for every class, with everything that has to be escaped.
pub(crate) fn long() -> String {
    "line \"one\"\n\tκόσμε \\ 数据 \u{1F600} \u{2028}".repeat(5)
}

/// A `data:` URL that is long enough for the class `attachments`.
pub(crate) fn data_url(mime: &str) -> String {
    format!("data:{mime};base64,{}", "aGVsbG8h".repeat(40))
}

fn part(name: &'static str, value: Value) -> Shape {
    Shape { name, kind: RowKind::Part, row_type: None, value }
}

fn message(name: &'static str, value: Value) -> Shape {
    Shape { name, kind: RowKind::Message, row_type: None, value }
}

fn row(name: &'static str, row_type: &'static str, value: Value) -> Shape {
    Shape { name, kind: RowKind::SessionMessage, row_type: Some(row_type), value }
}

/// A completed 1.x tool with this output and metadata.
pub(crate) fn completed(tool: &str, output: &str, metadata: &Value) -> Value {
    json!({"type": "tool", "callID": "call_1", "tool": tool, "state": {"status": "completed",
        "input": {"filePath": "/a"}, "output": output, "title": "t", "metadata": metadata,
        "time": {"start": 1_790_000_000_000_i64, "end": 1_790_000_000_001_i64}}})
}

/// Every shape of part, message and 2.x row.
pub(crate) fn all() -> Vec<Shape> {
    let mut shapes = parts();
    shapes.extend(tools());
    shapes.extend(messages());
    shapes.extend(rows());
    shapes
}

fn parts() -> Vec<Shape> {
    vec![
        part("text", json!({"type": "text", "text": long(), "time": {"start": 1, "end": 2}})),
        part(
            "reasoning",
            json!({"type": "reasoning", "text": long(), "time": {"start": 1}, "metadata": {"a": {"signature": "x"}}}),
        ),
        part("step-start", json!({"type": "step-start", "snapshot": "ab"})),
        part(
            "step-finish",
            json!({"type": "step-finish", "reason": "stop", "cost": 0.1, "tokens": {"input": 1}}),
        ),
        part("patch", json!({"type": "patch", "hash": "ab", "files": ["/a"]})),
        part(
            "image",
            json!({"type": "file", "mime": "image/png", "filename": "shot \"1\".png", "url": data_url("image/png")}),
        ),
        part(
            "plain file",
            json!({"type": "file", "mime": "text/plain", "filename": "a.txt", "url": data_url("text/plain")}),
        ),
        part("linked file", json!({"type": "file", "mime": "image/png", "url": "file:///a.png"})),
        part("compaction", json!({"type": "compaction", "auto": true, "overflow": false})),
        part("subtask", json!({"type": "subtask", "prompt": long(), "description": "d", "agent": "general"})),
        part("agent", json!({"type": "agent", "name": "plan"})),
        part("snapshot", json!({"type": "snapshot", "snapshot": "ab"})),
        part(
            "retry",
            json!({"type": "retry", "attempt": 1, "error": {"name": "APIError"}, "time": {"created": 1}}),
        ),
    ]
}

fn tools() -> Vec<Shape> {
    let mut marked = completed("read", &long(), &json!({"display": {"text": long()}, "truncated": false}));
    marked["state"]["time"]["compacted"] = json!(1_790_000_000_002_i64);
    marked["state"]["attachments"] =
        json!([{"type": "file", "mime": "image/png", "url": data_url("image/png")}]);
    let mut attached = completed("read", "Image read successfully", &json!({"truncated": false}));
    attached["state"]["attachments"] = json!([
        {"id": "prt_2", "type": "file", "mime": "image/png", "url": data_url("image/png")},
        {"id": "prt_3", "type": "file", "mime": "image/png", "url": "https://example.com/a.png"},
    ]);
    let state = |state: Value| json!({"type": "tool", "callID": "c", "tool": "bash", "state": state});
    vec![
        part("pending", state(json!({"status": "pending", "input": {}, "raw": ""}))),
        part(
            "running",
            state(
                json!({"status": "running", "input": {}, "metadata": {"output": long()}, "time": {"start": 1}}),
            ),
        ),
        part(
            "error",
            state(json!({"status": "error", "input": {}, "error": "no", "time": {"start": 1, "end": 2},
            "metadata": {"interrupted": true, "output": long()}})),
        ),
        part(
            "bash",
            completed(
                "bash",
                &long(),
                &json!({"output": long(), "exit": 0, "truncated": false, "outputPath": "/o"}),
            ),
        ),
        part(
            "read",
            completed(
                "read",
                &long(),
                &json!({"preview": long(), "truncated": false, "loaded": [], "display": {"type": "file", "text": long()}}),
            ),
        ),
        part(
            "edit",
            completed(
                "edit",
                "done",
                &json!({"diagnostics": {}, "diff": long(), "filediff": {"file": "m", "patch": long()}}),
            ),
        ),
        part(
            "task",
            completed("task", &long(), &json!({"sessionId": "ses_child", "model": {"modelID": "m"}})),
        ),
        part("compacted", marked),
        part("attachments", attached),
    ]
}

fn messages() -> Vec<Shape> {
    let diffs = json!([{"file": "a", "patch": long(), "additions": 1, "deletions": 0, "status": "modified"}]);
    let user = |summary: Value| {
        json!({"role": "user", "time": {"created": 1}, "agent": "build",
            "model": {"providerID": "p", "modelID": "m"}, "summary": summary})
    };
    let assistant = |completed: bool, summary: bool, error: Value| {
        let mut value = json!({"role": "assistant", "parentID": "msg_1", "mode": "build", "agent": "build",
            "path": {"cwd": "/a", "root": "/a"}, "cost": 0, "modelID": "m", "providerID": "p", "time": {"created": 1},
            "tokens": {"total": 1, "input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}});
        if completed {
            value["time"]["completed"] = json!(1_790_000_000_009_i64);
        }
        if summary {
            value["summary"] = json!(true);
        }
        if !error.is_null() {
            value["error"] = error;
        }
        value
    };
    vec![
        message("user with diffs", user(json!({"title": "t", "diffs": diffs}))),
        message("user without diffs", user(json!({"diffs": []}))),
        message("assistant", assistant(true, false, Value::Null)),
        message("running assistant", assistant(false, false, Value::Null)),
        message("summary", assistant(true, true, Value::Null)),
        message("failed assistant", assistant(true, false, json!({"name": "APIError", "data": {}}))),
    ]
}

/// A 2.x assistant row whose content is one of each kind.
pub(crate) fn assistant_row() -> Value {
    let time = json!({"created": 1, "ran": 2, "completed": 3});
    json!({"time": {"created": 1, "streamed": 2, "completed": 3}, "agent": "build", "model": {"id": "m", "providerID": "p"},
        "content": [
            {"type": "reasoning", "text": long(), "native": {"signature": long()}, "time": {"created": 1}},
            {"type": "tool", "id": "c1", "name": "shell", "executed": false, "time": time, "state": {"status": "completed",
                "input": {"command": "ls"}, "content": [{"type": "text", "text": long()},
                {"type": "file", "uri": data_url("image/png"), "mime": "image/png", "name": "a.png"}],
                "metadata": {"output": long(), "exit": 0}}},
            {"type": "tool", "id": "c2", "name": "read", "time": time, "state": {"status": "error", "input": {},
                "error": {"type": "tool.execution", "message": "no"}}},
            {"type": "text", "text": long()},
        ], "finish": "stop", "cost": 0.0123})
}

fn rows() -> Vec<Shape> {
    let time = json!({"created": 1});
    let file = json!({"data": "aGVsbG8h".repeat(40), "mime": "image/png", "source": {"type": "inline"}, "name": "a.png"});
    let older = json!({"uri": data_url("image/png"), "mime": "image/png"});
    vec![
        row(
            "2.x user",
            "user",
            json!({"time": time, "text": "look", "files": [file, older, {"uri": "file:///a", "mime": "text/plain"}]}),
        ),
        row("2.x user without text", "user", json!({"time": time, "text": "", "files": [file]})),
        row("2.x assistant", "assistant", assistant_row()),
        row("2.x system", "system", json!({"time": time, "text": long()})),
        row("2.x synthetic", "synthetic", json!({"time": time, "text": "x"})),
        row("2.x skill", "skill", json!({"time": time, "skill": "s", "name": "n", "text": "x"})),
        row(
            "2.x shell",
            "shell",
            json!({"time": time, "shellID": "sh_1", "command": "ls", "status": "exited", "exit": 0}),
        ),
        row(
            "2.x compaction",
            "compaction",
            json!({"time": time, "status": "completed", "reason": "auto", "summary": "s", "recent": "r"}),
        ),
        row(
            "2.x failed compaction",
            "compaction",
            json!({"time": time, "status": "failed", "reason": "auto", "error": {"type": "t", "message": "m"}}),
        ),
        row("2.x idle", "idle", json!({"time": time, "outcome": "succeeded"})),
        row("2.x agent", "agent-switched", json!({"time": time, "agent": "plan"})),
        row("2.x model", "model-switched", json!({"time": time, "model": {"id": "m", "providerID": "p"}})),
        row("2.x location", "location-switched", json!({"time": time, "location": {"directory": "/a"}})),
    ]
}

/// Another spelling of `value`: members in another order, white space, superfluous escapes, all chosen by `seed`.
pub(crate) fn spell(value: &Value, seed: u64) -> String {
    let mut speller = Speller { state: seed.wrapping_mul(2).wrapping_add(1), out: String::new() };
    if seed == 0 {
        return value.to_string();
    }
    speller.value(value);
    speller.out
}

struct Speller {
    state: u64,
    out: String,
}

impl Speller {
    /// A number below `below` (xorshift).
    fn roll(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % below
    }

    fn space(&mut self) {
        match self.roll(8) {
            0 => self.out.push(' '),
            1 => self.out.push_str("\n\t"),
            2 => self.out.push_str(" \r\n "),
            _ => {}
        }
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::Object(map) => {
                let mut members: Vec<_> = map.iter().collect();
                for index in 1..members.len() {
                    let other = usize::try_from(self.roll(index as u64 + 1)).unwrap();
                    members.swap(index, other);
                }
                self.list('{', '}', &members, |speller, (key, value)| {
                    speller.space();
                    speller.string(key);
                    speller.space();
                    speller.out.push(':');
                    speller.value(value);
                });
            }
            Value::Array(items) => self.list('[', ']', items, Self::value),
            Value::String(text) => self.string(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.out.push_str(&value.to_string()),
        }
        self.space();
    }

    fn list<T>(&mut self, open: char, close: char, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.out.push(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            each(self, item);
        }
        self.space();
        self.out.push(close);
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            let plain = serde_json::to_string(&character.to_string()).unwrap();
            if self.roll(40) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04X}").unwrap();
                }
            } else {
                self.out.push_str(&plain[1..plain.len() - 1]);
            }
        }
        self.out.push('"');
    }
}
