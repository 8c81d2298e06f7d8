//! A scriptable model behind the chat-completions protocol, for tests: it listens on a free loopback port, streams server-sent
//! events, and remembers what it was asked.
//!
//! What it answers is decided by *directives* in double brackets inside the newest run of user messages; they stay in force until the
//! turn is over. Without any it says one short text. Equal requests get equal answers. An unknown directive is answered with HTTP 400.
//!
//! | directive | effect (default) |
//! |---|---|
//! | `text=N` | the last answer has N characters (80) |
//! | `reasoning=N` | N characters of reasoning before every step (0) |
//! | `tools=N` | N steps with tool calls before the last answer (0) |
//! | `parallel=N` | calls in each such step (1) |
//! | `tool=NAME` | `bash` (default), `read`, `write`, `edit`, `glob`, `invalid` (no such tool) |
//! | `out=N`, `lines=N` | a shell call prints N bytes (200) in lines of N bytes (100) |
//! | `path=P`, `size=N` | the file of read, write, edit (`mock-<step>.txt`), and the bytes that write puts there (400) |
//! | `fail`, `failat=K` | every call fails, or those of the K-th step |
//! | `sleep=S`, `drip=S` | a shell call sleeps S seconds first, or prints in 20 pieces over S seconds |
//! | `until=FILE` | a shell call waits until that file of the project exists |
//! | `delay=S` | the stream of every answer is spread over S seconds |
//! | `hold=NAME` | the stream stops in its middle until [`Provider::release`] |
//! | `hang` | a piece of an answer, and then nothing until the client leaves |
//! | `stall=S` | nothing at all for S seconds first |
//! | `http=CODE`, `httponce=CODE` | this status instead of a stream, always or for the first request of the prompt |
//! | `cut` | the connection breaks in the middle of the stream, once for each prompt |
//! | `subagent=N`, `sub(...)` | the first N steps start child sessions, with these directives |
//! | `usage=N` | reports N prompt tokens; a large number triggers compaction |
//! | `todo` | the first step writes a todo list |

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

mod answer;
mod directives;
mod http;
mod stream;
mod tools;

/// The provider. It ends, and all its streams with it, when it is dropped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    requests: Vec<Value>,
    answered: BTreeSet<String>,
    active: usize,
    calls: usize,
    held: BTreeSet<String>,
    released: BTreeSet<String>,
}

impl Provider {
    /// Listens on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen on a free port");
        let address = listener.local_addr().expect("the port that was given");
        let shared = Arc::new(Shared::default());
        let for_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new()
            .name("mock-provider".to_owned())
            .spawn(move || accept(&listener, &for_acceptor))
            .expect("start the provider's thread");
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// Where a client finds it.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.lock().requests.clone()
    }

    /// The newest request of a turn: one that offered tools. Titles and summaries are asked for without any.
    pub fn last(&self) -> Option<Value> {
        self.shared.lock().requests.iter().rev().find(|request| !answer::offered(request).is_empty()).cloned()
    }

    /// The newest request of a turn whose newest user message contains `text`. Several sessions can share a provider this way.
    pub fn last_with(&self, text: &str) -> Option<Value> {
        let state = self.shared.lock();
        let mut turns = state.requests.iter().rev().filter(|request| !answer::offered(request).is_empty());
        turns.find(|request| newest_user(request).contains(text)).cloned()
    }

    /// Forgets the requests.
    pub fn reset(&self) {
        self.shared.lock().requests.clear();
    }

    /// Streams being written.
    pub fn active(&self) -> usize {
        self.shared.lock().active
    }

    /// Waits until a stream stands at `hold=NAME`.
    ///
    /// # Panics
    /// If none does within [`LIMIT`](crate::wait::LIMIT).
    pub fn wait_held(&self, name: &str) {
        let held = |state: &mut State| !state.held.contains(name);
        let (state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), crate::wait::LIMIT, held)
            .unwrap_or_else(PoisonError::into_inner);
        let waited = timeout.timed_out();
        drop(state);
        assert!(!waited, "no stream came to hold={name}");
    }

    /// Lets streams at `hold=NAME` go on, also those that come to it later.
    pub fn release(&self, name: &str) {
        self.shared.lock().released.insert(name.to_owned());
        self.shared.changed.notify_all();
    }

    /// An `opencode.json` that uses this provider for everything, with a context window of that many tokens.
    pub fn opencode_config(&self, context: u32) -> Value {
        json!({
            "$schema": "https://opencode.ai/config.json",
            "provider": {"mock": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Mock",
                "options": {"baseURL": self.base_url(), "apiKey": "x"},
                "models": {"m1": {"name": "m1", "reasoning": true, "tool_call": true, "attachment": true,
                    "modalities": {"input": ["text", "image"], "output": ["text"]},
                    "limit": {"context": context, "output": 4000}}}
            }},
            "model": "mock/m1",
            "small_model": "mock/m1",
            "autoupdate": false,
            "share": "disabled",
            "permission": "allow"
        })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        // Wakes the acceptor; where that fails it has ended already.
        let _woken = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ended = acceptor.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `duration`, or until the provider stops: then an error.
    fn pause(&self, duration: Duration) -> io::Result<()> {
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), duration, |state| !state.stopped)
            .unwrap_or_else(PoisonError::into_inner);
        if state.stopped { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Stands at a hold until it is released, or until the provider stops: then an error.
    fn hold(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.held.insert(name.to_owned());
        self.changed.notify_all();
        let state = self
            .changed
            .wait_while(state, |state| !state.stopped && !state.released.contains(name))
            .unwrap_or_else(PoisonError::into_inner);
        if state.stopped { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

fn newest_user(request: &Value) -> String {
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    messages
        .iter()
        .rfind(|message| message["role"] == "user")
        .map(|message| message["content"].to_string())
        .unwrap_or_default()
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.lock().stopped {
            return;
        }
        let Ok(connection) = connection else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || serve(connection, &shared));
    }
}

/// Answers one connection. A client that leaves early is normal: an aborted turn does that.
fn serve(mut connection: TcpStream, shared: &Shared) {
    let Ok(request) = http::read(&mut connection) else { return };
    if request.method != "POST" {
        let models = r#"{"object":"list","data":[{"id":"m1","object":"model"}]}"#;
        let _left = http::reply(&mut connection, 200, models);
        return;
    }
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
        let _left = http::reply(&mut connection, 400, r#"{"error":{"message":"the body is not JSON"}}"#);
        return;
    };
    let number = {
        let mut state = shared.lock();
        state.requests.push(body.clone());
        state.active += 1;
        state.calls += 1;
        state.calls
    };
    let _left = stream::answer(&mut connection, shared, &body, number);
    shared.lock().active -= 1;
}
