use std::io::{BufRead, BufReader};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::http::agent;

/// Follows the server's events. Its thread ends with the server's connection.
#[derive(Debug)]
pub struct Events {
    received: Receiver<Value>,
}

impl Events {
    /// Connects, and waits for the first event, which says that it is connected.
    pub(super) fn follow(url: &str) -> Self {
        let response = agent().get(url).call().expect("connect to the event stream");
        let lines = BufReader::new(response.into_body().into_reader()).lines();
        let (send, received) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Some(data) = line.strip_prefix("data:") else { continue };
                let Ok(event) = serde_json::from_str(data) else { continue };
                if send.send(event).is_err() {
                    return;
                }
            }
        });
        let events = Self { received };
        events.wait("server.connected", |_| true);
        events
    }

    /// Waits for an event of this type whose properties fit, and returns it. Events before it are passed over.
    ///
    /// # Panics
    /// If none comes within [`LIMIT`](crate::wait::LIMIT), or the stream ends.
    pub fn wait(&self, kind: &str, mut fits: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let event = self
                .received
                .recv_timeout(crate::wait::LIMIT)
                .unwrap_or_else(|error| panic!("waited in vain for the event {kind}: {error}"));
            if event["type"] == kind && fits(&event["properties"]) {
                return event;
            }
        }
    }

    /// The events received and not yet asked for.
    pub fn received(&self) -> Vec<Value> {
        self.received.try_iter().collect()
    }
}
