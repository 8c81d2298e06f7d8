//! One copy of the conversation from which one class is removed, and what the real OpenCode makes of it.

use headwater_testkit::opencode::OpenCode;
use serde_json::Value;

use crate::conversation::{EDIT, request_after};
use crate::promise::{assert_promised, request_without};

/// What a session is continued with. The same in every copy, so that requests can be compared.
const NEXT: &str = "go on [[text=20]]";

/// How the class was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Row by row, beside the running server.
    Live,
    /// Row by row, with the server stopped.
    Stopped,
    /// By a rebuild.
    Rebuilt,
}

/// A copy of the conversation.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) class: &'static str,
    pub(crate) way: Way,
    pub(crate) session: String,
}

/// What an untouched copy shows.
pub(crate) struct Control {
    texts: Vec<String>,
    messages: usize,
    request: Value,
}

impl Control {
    /// Learns from an untouched copy, which it continues.
    pub(crate) fn of(opencode: &OpenCode, session: &str) -> Self {
        let messages = opencode.messages(session);
        let request = request_after(opencode, session, NEXT);
        Self { texts: texts(&messages), messages: messages.len(), request }
    }
}

impl Trial {
    /// A new copy of `session` for this trial.
    pub(crate) fn new(opencode: &OpenCode, session: &str, class: &'static str, way: Way) -> Self {
        let copy = opencode.fork(session, None);
        if class == "superseded-events" {
            rewrite_texts(opencode, &copy);
        }
        Self { class, way, session: copy }
    }

    /// Checks that OpenCode lists, shows, exports and continues the session as promised.
    pub(crate) fn assert_continues(&self, opencode: &OpenCode, control: &Control) {
        let name = format!("{} {:?}", self.class, self.way);
        assert!(opencode.sessions().iter().any(|listed| listed["id"] == *self.session), "{name}: listed");
        let messages = opencode.messages(&self.session);
        assert_eq!(messages.len(), control.messages, "{name}: every message is there");
        let export = opencode.export(&self.session);
        let exported = export["messages"].as_array().unwrap();
        for (what, messages) in [("shown", &messages), ("exported", exported)] {
            let expected: Vec<&String> =
                control.texts.iter().filter(|text| self.class != "attachments" || !is_note(text)).collect();
            let found = texts(messages);
            let found: Vec<&String> = found.iter().filter(|text| !is_note(text)).collect();
            assert_eq!(found, expected, "{name}: every word {what}");
        }
        let request = request_after(opencode, &self.session, NEXT);
        let promised = request_without(self.class, &control.request);
        assert_promised(&name, &request, &promised);
    }

    /// Checks that OpenCode forks, reverts with files, takes the revert back, and compacts the session.
    pub(crate) fn assert_changes_course(&self, opencode: &OpenCode) {
        let name = format!("{} {:?}", self.class, self.way);
        let before = opencode.messages(&self.session);
        let copy = opencode.fork(&self.session, None);
        assert_eq!(texts(&opencode.messages(&copy)), texts(&before), "{name}: forked");

        let edit = before.iter().find(|message| message["parts"][0]["text"] == EDIT).unwrap();
        let file = || std::fs::read_to_string(opencode.home().project().join("mock-1.txt")).unwrap();
        assert!(file().contains("omega") && !file().contains("alpha"), "{name}: the edit stands");
        opencode.revert(&self.session, edit["info"]["id"].as_str().unwrap());
        assert!(file().contains("alpha") && !file().contains("omega"), "{name}: reverted");
        opencode.unrevert(&self.session);
        assert!(file().contains("omega") && !file().contains("alpha"), "{name}: the revert taken back");
        assert_eq!(opencode.messages(&self.session), before, "{name}: all is as before the revert");

        opencode.summarize(&self.session);
        let request = request_after(opencode, &self.session, "after the summary [[text=20]]");
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages[1]["content"], "What did we do so far?", "{name}: compacted");
        assert_eq!(messages.last().unwrap()["content"], "after the summary [[text=20]]", "{name}: compacted");
    }
}

/// Writes every text part of a copy again, as a client may: OpenCode keeps one more event copy of each.
fn rewrite_texts(opencode: &OpenCode, session: &str) {
    for message in opencode.messages(session) {
        let parts = message["parts"].as_array().unwrap();
        for part in parts.iter().filter(|part| part["type"] == "text") {
            let (message, id) = (message["info"]["id"].as_str().unwrap(), part["id"].as_str().unwrap());
            let path = format!("/session/{session}/message/{message}/part/{id}");
            assert_eq!(opencode.request("PATCH", &path, Some(part)).status, 200, "{path}");
        }
    }
}

/// The words of a conversation, in order.
fn texts(messages: &[Value]) -> Vec<String> {
    let parts = messages.iter().flat_map(|message| message["parts"].as_array().unwrap());
    let texts = parts.filter(|part| part["type"] == "text");
    texts.map(|part| part["text"].as_str().unwrap().to_owned()).collect()
}

fn is_note(text: &str) -> bool {
    text == "[Attached image/png: pixel.png]"
}
