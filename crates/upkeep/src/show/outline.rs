//! What a row holds, found in one pass over its JSON without holding it.

use std::io::Read;

use headwater_model::ByteCount;

use super::ITEMS_MAX;
use crate::json_stream::{JsonError, Met, Step, Value, is_path, walk};

/// A text inside a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPlace {
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// A JSON string to decode; else JSON to show as it is spelled.
    pub(super) is_string: bool,
    /// Whether it is technical: reasoning, or input, output or error of a tool.
    is_technical: bool,
}

/// What a message's own row says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) role: Option<String>,
    pub(super) completed: Option<i64>,
    pub(super) model: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) is_summary: bool,
    pub(super) error: Option<String>,
}

/// What one item says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) id: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) status: Option<String>,
    pub(super) title: Option<String>,
    pub(super) bytes: ByteCount,
    texts: Vec<TextPlace>,
}

/// Most texts of one item that are told apart; a tool's content has one or two.
const TEXTS_MAX: usize = 1000;

impl Item {
    /// The texts to show. Reasoning is technical as a whole.
    pub(super) fn texts(&self, technical: bool) -> Vec<TextPlace> {
        let is_reasoning = self.kind.as_deref() == Some("reasoning");
        self.texts.iter().filter(|text| technical || !(text.is_technical || is_reasoning)).copied().collect()
    }

    fn add_text(&mut self, met: &Met, is_technical: bool) {
        let is_string = matches!(met.value, Value::Text(_));
        let bytes = met.range.end - met.range.start;
        let is_empty = bytes <= 2 || met.value == Value::Null;
        if self.texts.len() < TEXTS_MAX && !is_empty {
            self.texts.push(TextPlace { start: met.range.start, bytes, is_string, is_technical });
        }
    }
}

/// The head of a 1.x message row.
pub(super) fn v1_message(data: impl Read) -> Result<Head, JsonError> {
    let mut head = Head::default();
    walk(data, |path, met| head.add(path, &met))?;
    Ok(head)
}

/// A 1.x part row.
pub(super) fn v1_part(data: impl Read) -> Result<Item, JsonError> {
    let mut item = Item::default();
    walk(data, |path, met| {
        let text = || met.value.text().map(str::to_owned);
        let keys = |keys: &[&str]| is_path(path, keys);
        if keys(&["type"]) {
            item.kind = text();
        } else if keys(&["tool"]) {
            item.tool = text();
        } else if keys(&["state", "status"]) {
            item.status = text();
        } else if keys(&["state", "title"]) || keys(&["filename"]) || keys(&["description"]) {
            item.title = text();
        } else if keys(&["text"]) || keys(&["prompt"]) {
            item.add_text(&met, false);
        } else if keys(&["state", "input"]) || keys(&["state", "output"]) || keys(&["state", "error"]) {
            item.add_text(&met, true);
        }
    })?;
    Ok(item)
}

/// A 2.x row: its head, its items, and how many items there are beyond [`ITEMS_MAX`].
pub(super) fn v2_message(row_type: &str, data: impl Read) -> Result<(Head, Vec<Item>, u64), JsonError> {
    let mut head = Head { role: Some(row_type.to_owned()), ..Head::default() };
    let mut own = Item { kind: Some(row_type.to_owned()), ..Item::default() };
    let mut items: Vec<Item> = Vec::new();
    let mut left_out = 0;
    walk(data, |path, met| match path {
        [content, Step::Index(index), rest @ ..] if content.is("content") => {
            let index = usize::try_from(*index).unwrap_or(usize::MAX);
            if index >= ITEMS_MAX {
                left_out += u64::from(rest.is_empty());
                return;
            }
            // Members of an element come before its end, elements one after the other.
            if items.len() <= index {
                items.resize_with(index + 1, Item::default);
            }
            items[index].add_v2(rest, &met);
        }
        _ => {
            head.add(path, &met);
            let text = [&["text"][..], &["summary"], &["command"], &["output", "output"]];
            if text.iter().any(|keys| is_path(path, keys)) {
                own.add_text(&met, false);
            }
        }
    })?;
    head.is_summary |= row_type == "compaction";
    if items.is_empty() && row_type != "assistant" && !own.texts.is_empty() {
        own.bytes = own.texts.iter().map(|text| ByteCount::new(text.bytes)).sum();
        items.push(own);
    }
    Ok((head, items, left_out))
}

impl Item {
    fn add_v2(&mut self, path: &[Step], met: &Met) {
        let text = || met.value.text().map(str::to_owned);
        let keys = |keys: &[&str]| is_path(path, keys);
        if path.is_empty() {
            self.bytes = ByteCount::new(met.range.end - met.range.start);
        } else if keys(&["type"]) {
            self.kind = text();
        } else if keys(&["id"]) {
            self.id = text();
        } else if keys(&["name"]) {
            self.tool = text();
        } else if keys(&["state", "status"]) {
            self.status = text();
        } else if keys(&["text"]) {
            self.add_text(met, false);
        } else if keys(&["state", "input"]) || keys(&["state", "error", "message"]) || is_tool_text(path) {
            self.add_text(met, true);
        }
    }
}

/// `state.content[n].text`.
fn is_tool_text(path: &[Step]) -> bool {
    matches!(path, [state, content, Step::Index(_), text] if state.is("state") && content.is("content") && text.is("text"))
}

impl Head {
    fn add(&mut self, path: &[Step], met: &Met) {
        let text = || met.value.text().map(str::to_owned);
        let keys = |keys: &[&str]| is_path(path, keys);
        if keys(&["role"]) {
            self.role = text();
        } else if keys(&["time", "completed"]) {
            self.completed = met.value.millis();
        } else if keys(&["modelID"]) || keys(&["model", "modelID"]) || keys(&["model", "id"]) {
            self.model = text();
        } else if keys(&["agent"]) {
            self.agent = text();
        } else if keys(&["summary"]) {
            self.is_summary |= met.value == Value::Bool(true);
        } else if keys(&["error", "name"]) || keys(&["error", "type"]) {
            self.error = text();
        }
    }
}
