//! The real OpenCode 1.18.34, driven over its own interface.
//!
//! [`OpenCode::start`] makes a private home with a git project, a [mock provider](crate::mock) and a running server. Everything ends
//! when it is dropped, and also when the test process is killed. The program comes from the package registry by its name and version
//! ([`binary`]); without it the tests fail and say what is missing.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::mock::Provider;
use crate::wait::until;

mod events;
mod home;
mod http;
mod install;
mod server;

pub use events::Events;
pub use home::Home;
pub use http::Answer;
pub use install::{PACKAGE, VERSION, binary};

use server::Server;

/// How a private OpenCode is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tokens of the model's context window; a full one triggers compaction.
    pub context: u32,
    /// Members added to `opencode.json`.
    pub config: Value,
}

impl Default for Options {
    fn default() -> Self {
        Self { context: 100_000, config: json!({}) }
    }
}

/// A private OpenCode: home, project, model and server.
#[derive(Debug)]
pub struct OpenCode {
    // Dropped in this order: the server before the model that it talks to and the folder that it writes into.
    server: Option<Server>,
    provider: Provider,
    home: Home,
}

impl OpenCode {
    /// Starts one in a temporary folder.
    pub fn start() -> Self {
        Self::start_with(&Options::default())
    }

    /// The same with other settings.
    pub fn start_with(options: &Options) -> Self {
        let home = Home::create();
        let provider = Provider::start();
        let mut config = provider.opencode_config(options.context);
        for (key, value) in options.config.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        home.write_config(&config);
        let server = Some(Server::start(&home));
        Self { server, provider, home }
    }

    /// The model.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Its folders.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The database file.
    pub fn database(&self) -> std::path::PathBuf {
        self.home.database()
    }

    /// Process id of the server.
    ///
    /// # Panics
    /// If it is stopped.
    pub fn pid(&self) -> u32 {
        self.server().pid()
    }

    /// Ends the server as a user does, with SIGTERM. Its write-ahead log stays (fact A1). Does nothing if it is stopped.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }

    /// Ends the server with SIGKILL, in the middle of whatever it does.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Starts the server on the same home again.
    ///
    /// # Panics
    /// If it still runs, or does not come up.
    pub fn restart(&mut self) {
        assert!(self.server.is_none(), "the server still runs");
        self.server = Some(Server::start(&self.home));
    }

    /// Tries to start the server while something else is in its way. Returns whether it came up.
    pub fn try_restart(&mut self) -> bool {
        assert!(self.server.is_none(), "the server still runs");
        self.server = Server::try_start(&self.home).ok();
        self.server.is_some()
    }

    /// Sends a request to the server.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        http::send(&self.server().url(path), method, body)
    }

    /// `GET`s a document.
    ///
    /// # Panics
    /// If the answer is not a success.
    pub fn get(&self, path: &str) -> Value {
        self.request("GET", path, None).success(path)
    }

    /// `POST`s a document.
    ///
    /// # Panics
    /// If the answer is not a success.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.request("POST", path, Some(body)).success(path)
    }

    /// Makes a session and returns its id.
    pub fn new_session(&self, title: &str) -> String {
        id_of(&self.post("/session", &json!({"title": title})))
    }

    /// Sends a prompt and waits until the turn is over and its last writes are done ([`settle`](Self::settle)).
    pub fn say(&self, session: &str, prompt: &str) -> Value {
        let answer = self.post(&format!("/session/{session}/message"), &prompt_body(prompt));
        self.settle(session);
        answer
    }

    /// Sends a prompt and does not wait.
    pub fn say_async(&self, session: &str, prompt: &str) {
        self.post(&format!("/session/{session}/prompt_async"), &prompt_body(prompt));
    }

    /// Aborts the running turn and waits until it is over.
    pub fn abort(&self, session: &str) {
        self.post(&format!("/session/{session}/abort"), &json!({}));
        self.settle(session);
    }

    /// Waits until the session is idle and the writes that OpenCode makes shortly after (fact A7) have been made: the newest prompt
    /// has got its diff summary.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn settle(&self, session: &str) {
        until("a session to settle", || {
            let newest = self.messages(session).into_iter().rev().find(is_prompt);
            !self.is_busy(session) && newest.is_none_or(|message| !message["info"]["summary"].is_null())
        });
    }

    /// Whether this server is running a turn of the session.
    pub fn is_busy(&self, session: &str) -> bool {
        !self.get("/session/status")[session].is_null()
    }

    /// The sessions of the project, newest first.
    pub fn sessions(&self) -> Vec<Value> {
        list(self.get("/session"))
    }

    /// The messages of a session with their parts, oldest first.
    pub fn messages(&self, session: &str) -> Vec<Value> {
        list(self.get(&format!("/session/{session}/message")))
    }

    /// Copies a session, whole or up to (not including) a message. Returns the copy's id.
    pub fn fork(&self, session: &str, before: Option<&str>) -> String {
        let body = before.map_or_else(|| json!({}), |message| json!({"messageID": message}));
        id_of(&self.post(&format!("/session/{session}/fork"), &body))
    }

    /// Stages a revert of a message and all after it; files go back too.
    pub fn revert(&self, session: &str, message: &str) -> Value {
        self.post(&format!("/session/{session}/revert"), &json!({"messageID": message}))
    }

    /// Takes a staged revert back.
    pub fn unrevert(&self, session: &str) -> Value {
        self.post(&format!("/session/{session}/unrevert"), &json!({}))
    }

    /// Compacts a session: a summary takes the place of its history.
    pub fn summarize(&self, session: &str) {
        self.post(&format!("/session/{session}/summarize"), &json!({"providerID": "mock", "modelID": "m1"}));
        until("a compaction to end", || !self.is_busy(session));
    }

    /// Runs a shell command of the user.
    pub fn shell(&self, session: &str, command: &str) {
        self.post(&format!("/session/{session}/shell"), &json!({"agent": "build", "command": command}));
    }

    /// Deletes a session with its children.
    pub fn delete_session(&self, session: &str) {
        let path = format!("/session/{session}");
        self.request("DELETE", &path, None).success(&path);
    }

    /// What `opencode export` writes for a session. It goes to a file, since OpenCode cuts it at 64 KiB in a pipe (fact A10).
    pub fn export(&self, session: &str) -> Value {
        self.home.export(session)
    }

    /// Follows the events of the project from here on.
    pub fn events(&self) -> Events {
        Events::follow(&self.server().url("/event"))
    }

    /// Makes a session over the routes that write 2.x rows (fact A11) and returns its id.
    pub fn new_v2_session(&self) -> String {
        let answer = self.post("/api/session", &json!({}));
        answer["data"]["id"]
            .as_str()
            .or_else(|| answer["id"].as_str())
            .expect("the id of the new session")
            .to_owned()
    }

    /// Sends a prompt to such a session and waits until its newest assistant row is complete and no turn is active.
    pub fn say_v2(&self, session: &str, prompt: &str) {
        let before = self.v2_messages(session).len();
        self.post(&format!("/api/session/{session}/prompt"), &json!({"prompt": {"text": prompt}}));
        until("a 2.x turn to end", || {
            let messages = self.v2_messages(session);
            let newest = messages.iter().rev().find(|message| message["type"] == "assistant");
            let complete = newest.is_some_and(|message| {
                !message["time"]["completed"].is_null() && message["finish"] != "tool-calls"
            });
            messages.len() > before + 1 && complete && !self.is_active_v2(session)
        });
    }

    /// Whether a turn of such a session runs.
    pub fn is_active_v2(&self, session: &str) -> bool {
        self.get("/api/session/active").to_string().contains(session)
    }

    /// The rows of such a session, oldest first.
    pub fn v2_messages(&self, session: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/session/{session}/message?limit=200&order=asc"));
        list(answer.get("data").cloned().unwrap_or(answer))
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("the server is stopped")
    }
}

/// Whether a message is a prompt of a user: the marks of a compaction are user messages without text.
fn is_prompt(message: &Value) -> bool {
    let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
    message["info"]["role"] == "user" && !parts.iter().any(|part| part["type"] == "compaction")
}

fn prompt_body(prompt: &str) -> Value {
    json!({"parts": [{"type": "text", "text": prompt}]})
}

fn id_of(answer: &Value) -> String {
    answer["id"].as_str().expect("an id in OpenCode's answer").to_owned()
}

fn list(answer: Value) -> Vec<Value> {
    match answer {
        Value::Array(items) => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            panic!("OpenCode answered with something else than a list")
        }
    }
}

/// Runs a program to its end.
///
/// # Panics
/// If it cannot be started or fails; its errors are in the message.
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("start a program");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} failed: {errors}", Path::new(command.get_program()).display());
}
