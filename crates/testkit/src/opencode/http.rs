use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use ureq::{Agent, http};

/// What the server answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The document; null where the body is empty, a string where it is not JSON.
    pub body: Value,
}

impl Answer {
    /// The document of a successful answer.
    ///
    /// # Panics
    /// If it is none; `what` says which request it answers.
    pub fn success(self, what: &str) -> Value {
        assert!((200..300).contains(&self.status), "{what} was answered with {}: {}", self.status, self.body);
        self.body
    }
}

pub(super) fn send(url: &str, method: &str, body: Option<&Value>) -> Answer {
    try_send(url, method, body, Duration::from_mins(2))
        .unwrap_or_else(|error| panic!("{method} {url}: {error}"))
}

pub(super) fn try_send(
    url: &str,
    method: &str,
    body: Option<&Value>,
    limit: Duration,
) -> Result<Answer, ureq::Error> {
    let request = http::Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/json")
        .body(body.map(Value::to_string).unwrap_or_default())
        .expect("a request from a valid URL");
    let request = agent().configure_request(request).timeout_global(Some(limit)).build();
    let mut response = agent().run(request)?;
    let status = response.status().as_u16();
    let text = response.body_mut().with_config().limit(u64::MAX).read_to_string()?;
    let body = match text.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    };
    Ok(Answer { status, body })
}

/// One agent for all: its connections are to loopback only, never through a proxy.
pub(super) fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .allow_non_standard_methods(true)
            .build();
        Agent::new_with_config(config)
    })
}
