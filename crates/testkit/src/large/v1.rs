use rusqlite::params;

use super::generator::{Generator, cut};

/// Weighted by how often each is used.
const TOOLS: [&str; 20] = [
    "bash", "bash", "bash", "bash", "bash", "bash", "bash", "bash", "read", "read", "read", "read", "read",
    "read", "grep", "grep", "edit", "edit", "write", "task",
];

/// Writes one session and returns its id. `repeats` is how often copies come again in the event log.
pub(super) fn session(
    generator: &mut Generator<'_>,
    repeats: f64,
    events: bool,
    parent: Option<&str>,
) -> String {
    let number = generator.summary.sessions + 1;
    let archived = number.is_multiple_of(17);
    let mut session = Session::begin(generator, &format!("session {number:05}"), events, parent, archived);
    for _ in 0..session.generator.random.pick(&[1, 1, 2, 3, 5, 8]) {
        let steps = session.generator.random.pick(&[1, 2, 3, 4, 6, 9]);
        let diff = if session.generator.chance(0.35) { session.generator.size(30_000, 2_000_000) } else { 0 };
        session.turn(steps, repeats, diff);
        if session.generator.is_full() {
            break;
        }
    }
    session.end()
}

/// Writes a session whose only message has `bytes` bytes, with three event copies of it and one from before.
pub(super) fn giant(generator: &mut Generator<'_>, bytes: usize) {
    let mut session = Session::begin(generator, "giant session", true, None, false);
    let user = user(session.generator.tick(40));
    let patch = session.generator.text(bytes);
    let big = format!(
        r#"{user},"summary":{{"diffs":[{{"file":"big.sql","patch":"{patch}","additions":1,"deletions":0,"status":"added"}}]}}"#
    );
    let message = session.message(&big, &[&user, &big, &big]);
    session.part(&message, r#""type":"text","text":"make it big""#, &[]);
    session.end();
}

struct Session<'g, 'a> {
    generator: &'g mut Generator<'a>,
    id: String,
    title: String,
    created: i64,
    seq: i64,
    events: bool,
}

impl<'g, 'a> Session<'g, 'a> {
    fn begin(
        generator: &'g mut Generator<'a>,
        title: &str,
        events: bool,
        parent: Option<&str>,
        archived: bool,
    ) -> Self {
        let id = generator.id("ses");
        let created = generator.tick(40);
        generator.insert("INSERT INTO event_sequence (aggregate_id, seq) VALUES (?, 0)", params![id]);
        generator.insert(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, path, title, version, agent, model, time_created, \
             time_updated, time_archived) VALUES (?, ?, ?, ?, ?, '', ?, '1.18.34', 'build', \
             '{\"id\":\"m1\",\"providerID\":\"mock\",\"variant\":\"default\"}', ?, ?7, ?)",
            params![
                id,
                generator.project,
                parent,
                format!("s-{}", generator.summary.sessions),
                generator.options.directory,
                title,
                created,
                archived.then_some(created)
            ],
        );
        generator.summary.sessions += 1;
        let mut session = Self { generator, id, title: title.to_owned(), created, seq: -1, events };
        session.session_event("session.created.1");
        session
    }

    fn end(self) -> String {
        self.generator
            .insert("UPDATE event_sequence SET seq = ? WHERE aggregate_id = ?", params![self.seq, self.id]);
        let now = self.generator.now();
        self.generator.insert("UPDATE session SET time_updated = ? WHERE id = ?", params![now, self.id]);
        self.id
    }

    fn event(&mut self, kind: &str, data: &str) {
        self.seq += 1;
        if self.events {
            self.generator.write_event(&self.id, self.seq, kind, data);
        }
    }

    fn session_event(&mut self, kind: &str) {
        let data = format!(
            r#"{{"sessionID":"{id}","info":{{"id":"{id}","slug":"s","projectID":"{}","directory":"{}","path":"","cost":0,"tokens":{{"input":0,"output":0,"reasoning":0,"cache":{{"read":0,"write":0}}}},"title":"{}","agent":"build","model":{{"id":"m1","providerID":"mock","variant":"default"}},"version":"1.18.34","time":{{"created":{},"updated":{}}}}}}}"#,
            self.generator.project,
            self.generator.options.directory,
            self.title,
            self.created,
            self.generator.now(),
            id = self.id,
        );
        self.event(kind, &data);
    }

    /// Writes a message whose members are `body`; `copies` are what its event rows held before.
    fn message(&mut self, body: &str, copies: &[&str]) -> String {
        let id = self.generator.id("msg");
        let at = self.generator.tick(40);
        for copy in copies.iter().chain([&body]) {
            let event = format!(
                r#"{{"sessionID":"{session}","info":{{"id":"{id}","sessionID":"{session}",{copy}}}}}"#,
                session = self.id
            );
            self.event("message.updated.1", &event);
        }
        self.generator.write_message(&id, &self.id, at, &format!("{{{body}}}"));
        id
    }

    /// Writes a part whose members are `body`.
    fn part(&mut self, message: &str, body: &str, copies: &[&str]) {
        let id = self.generator.id("prt");
        let at = self.generator.tick(7);
        for copy in copies.iter().chain([&body]) {
            let event = format!(
                r#"{{"sessionID":"{session}","part":{{"id":"{id}","sessionID":"{session}","messageID":"{message}",{copy}}},"time":{at}}}"#,
                session = self.id
            );
            self.event("message.part.updated.1", &event);
        }
        self.generator.write_part(&id, message, &self.id, at, &format!("{{{body}}}"));
    }

    /// A prompt and the steps that answer it. Its diff summary grows with each step up to `diff` bytes.
    fn turn(&mut self, steps: usize, repeats: f64, diff: usize) {
        let user = user(self.generator.tick(1000));
        let mut copies = vec![user.clone()];
        let mut body = format!(r#"{user},"summary":{{"diffs":[]}}"#);
        if diff > 0 {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 16")]
            let times = 1 + (repeats * 0.4) as usize;
            for step in 1..=steps {
                let patch = self.generator.text(diff * step / steps);
                body = format!(
                    r#"{user},"summary":{{"diffs":[{{"file":"src/m.rs","patch":"{patch}","additions":{},"deletions":2,"status":"modified"}}]}}"#,
                    step * 9
                );
                copies.extend(std::iter::repeat_n(body.clone(), times));
            }
        }
        let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
        let prompt = self.message(&body, &copies);
        let length = self.generator.size(150, 4000);
        let text = self.generator.text(length);
        self.part(&prompt, &format!(r#""type":"text","text":"{text}""#), &[]);
        for step in 0..steps {
            self.step(&prompt, step, step + 1 == steps, repeats);
        }
    }

    fn step(&mut self, prompt: &str, step: usize, is_last: bool, repeats: f64) {
        let created = self.generator.tick(500);
        let directory = self.generator.options.directory.clone();
        let reason = if is_last { "stop" } else { "tool-calls" };
        let head = format!(
            r#""parentID":"{prompt}","role":"assistant","mode":"build","agent":"build","path":{{"cwd":"{directory}","root":"{directory}"}},"cost":0,"tokens":{{"input":{},"output":90,"reasoning":0,"cache":{{"read":0,"write":0}}}},"modelID":"m1","providerID":"mock","time":{{"created":{created}"#,
            2000 + 700 * step
        );
        let open = format!("{head}}}");
        let done = format!(r#"{head},"completed":{}}},"finish":"{reason}""#, created + 2500);
        let message = self.message(&done, &[&open, &open, &done]);
        let snapshot = self.generator.hash();
        self.part(&message, &format!(r#""type":"step-start","snapshot":"{snapshot}""#), &[]);
        self.reasoning(&message);
        if is_last || self.generator.chance(0.3) {
            let (now, length) = (self.generator.now(), self.generator.size(500, 8000));
            let text = self.generator.text(length);
            let empty = format!(r#""type":"text","text":"","time":{{"start":{now}}}"#);
            let body = format!(r#""type":"text","text":"{text}","time":{{"start":{now},"end":{}}}"#, now + 9);
            self.part(&message, &body, &[&empty]);
        }
        if !is_last {
            for _ in 0..self.generator.random.pick(&[1, 1, 1, 2, 3]) {
                self.tool(&message, repeats);
            }
        }
        let finish = format!(
            r#""type":"step-finish","reason":"{reason}","snapshot":"{snapshot}","cost":0,"tokens":{{"input":2000,"output":90,"reasoning":0,"cache":{{"read":0,"write":0}}}}"#
        );
        self.part(&message, &finish, &[]);
        if self.generator.chance(0.2) {
            self.part(
                &message,
                &format!(r#""type":"patch","hash":"{snapshot}","files":["{directory}/src/m.rs"]"#),
                &[],
            );
        }
        self.session_event("session.updated.1");
    }

    fn reasoning(&mut self, message: &str) {
        let (now, length) = (self.generator.now(), self.generator.size(900, 20_000));
        let text = self.generator.text(length);
        let mut state = String::new();
        if self.generator.chance(0.3) {
            let (item, length) = (self.generator.random.bits() >> 16, self.generator.size(700, 6000));
            let secret = self.generator.text(length).replace("\\n", "/");
            state = format!(
                r#","metadata":{{"openai":{{"itemId":"rs_{item:012x}","reasoningEncryptedContent":"{secret}"}}}}"#
            );
        }
        let empty = format!(r#""type":"reasoning","text":"","time":{{"start":{now}}}"#);
        let body = format!(
            r#""type":"reasoning","text":"{text}"{state},"time":{{"start":{now},"end":{}}}"#,
            now + 9
        );
        self.part(message, &body, &[&empty]);
    }

    fn tool(&mut self, message: &str, repeats: f64) {
        let name = self.generator.random.pick(&TOOLS);
        let (call, start, number) =
            (self.generator.random.bits() >> 16, self.generator.tick(40), self.generator.number());
        let base = format!(r#""type":"tool","tool":"{name}","callID":"call_{call:012x}","state":"#);
        let pending = format!(r#"{base}{{"status":"pending","input":{{}},"raw":""}}"#);
        let running = |input: &str, more: &str| {
            format!(r#"{base}{{"status":"running","input":{input}{more},"time":{{"start":{start}}}}}"#)
        };
        if self.generator.chance(0.06) {
            let input = format!(r#"{{"filePath":"/missing/{number}.rs"}}"#);
            let failed = format!(
                r#"{base}{{"status":"error","input":{input},"error":"File not found: /missing","time":{{"start":{start},"end":{}}}}}"#,
                start + 5
            );
            self.part(message, &failed, &[&pending, &running(&input, "")]);
            return;
        }
        let shape = self.tool_shape(name, number);
        let mut copies = vec![pending, running(&shape.input, "")];
        if name == "bash" {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 40")]
            let steps = 1 + self.generator.random.below(2 + repeats as usize);
            let full = cut(&shape.output, 30_000);
            for step in 1..=steps {
                let preview = cut(full, full.len() * step / steps);
                copies.push(running(&shape.input, &format!(r#","metadata":{{"output":"{preview}"}}"#)));
            }
        }
        let done = format!(
            r#"{base}{{"status":"completed","input":{},"output":"{}","title":"{name} {number}","metadata":{},"time":{{"start":{start},"end":{}}}}}"#,
            shape.input,
            shape.output,
            shape.metadata,
            start + 800
        );
        let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
        self.part(message, &done, &copies);
    }

    /// Where the bytes of a completed call are depends on the tool (fact A3).
    fn tool_shape(&mut self, name: &str, number: u64) -> Shape {
        let length = self.generator.size(6000, 51_200);
        let output = self.generator.text(length);
        let directory = self.generator.options.directory.clone();
        let metadata = format!(r#"{{"truncated":{}}}"#, length >= 51_200);
        match name {
            "bash" => Shape {
                input: format!(r#"{{"command":"cargo test {number}","description":"run"}}"#),
                metadata: format!(r#"{{"output":"{}","exit":0,"truncated":false}}"#, cut(&output, 30_000)),
                output,
            },
            "edit" => {
                let (old, new) = (self.generator.text(300), self.generator.text(320));
                let patch = cut(&output, 9000);
                Shape {
                    input: format!(
                        r#"{{"filePath":"{directory}/src/m{number}.rs","oldString":"{old}","newString":"{new}"}}"#
                    ),
                    metadata: format!(
                        r#"{{"diagnostics":{{}},"diff":"{patch}","filediff":{{"file":"m.rs","patch":"{patch}"}}}}"#
                    ),
                    output: "Edit applied successfully.".to_owned(),
                }
            }
            "write" => Shape {
                input: format!(r#"{{"filePath":"{directory}/src/w{number}.rs","content":"{output}"}}"#),
                output: "Wrote file successfully.".to_owned(),
                metadata,
            },
            "task" => {
                let prompt = self.generator.text(400);
                let input =
                    format!(r#"{{"description":"child","prompt":"{prompt}","subagent_type":"general"}}"#);
                Shape { input, output, metadata }
            }
            _ => {
                Shape { input: format!(r#"{{"filePath":"{directory}/src/f{number}.rs"}}"#), output, metadata }
            }
        }
    }
}

struct Shape {
    input: String,
    output: String,
    metadata: String,
}

/// The members that every user message has.
fn user(created: i64) -> String {
    format!(
        r#""role":"user","time":{{"created":{created}}},"agent":"build","model":{{"providerID":"mock","modelID":"m1"}}"#
    )
}
