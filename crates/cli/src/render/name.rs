//! The name of an enum value as JSON has it, for people too: one word for one thing.

use serde::Serialize;

/// The text that `value` is in JSON; empty where it is none.
pub(crate) fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
