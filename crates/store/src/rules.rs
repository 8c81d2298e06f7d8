//! What is decided alike whatever the database: metadata, tools, requests, reserved turns, prompt times.
//!
//! Both backends and the model in memory call these; each is a pure function of rows.

mod metadata;

use headwater_model::WallTime;

use crate::{BadMutation, ContentLimit, MetadataChange};

pub use metadata::Metadata;

/// The type of messages that ask for permission; they carry a `tool_call_id` too and are no tools.
const PERMISSION_REQUEST: &str = "permission_request";

/// The type of messages that ask a question.
const CLARIFICATION_REQUEST: &str = "clarification_request";

/// The type that an empty stored one stands for.
pub const PLAIN: &str = "message";

/// Refuses text that one of the databases cannot keep.
///
/// # Errors
/// [`BadMutation::NulCharacter`].
pub fn ensure_text(text: &str) -> Result<(), BadMutation> {
    if text.contains('\0') { Err(BadMutation::NulCharacter) } else { Ok(()) }
}

/// Refuses content of more than `limit` bytes.
///
/// # Errors
/// [`BadMutation::TooLarge`].
pub fn ensure_fits(bytes: u64, limit: ContentLimit) -> Result<(), BadMutation> {
    let bytes = bytes.into();
    if bytes > limit.0 { Err(BadMutation::TooLarge { bytes, limit: limit.0 }) } else { Ok(()) }
}

/// Whether a turn with this metadata is only reserved: hidden until a message names it. Stored metadata that is no object reserves
/// nothing.
pub fn is_reserved(metadata: &str) -> bool {
    Metadata::parse(metadata).is_ok_and(|members| {
        matches!(members.get("prompt_dispatch_pending"), Some("true" | "1" | "\"true\"" | "\"1\""))
    })
}

/// Whether a message of this type and metadata is a tool call.
pub fn is_tool(kind: &str, metadata: &Metadata<'_>) -> bool {
    kind != PERMISSION_REQUEST && metadata.get("tool_call_id").is_some_and(|id| id != "null")
}

/// Whether a message of this type asks for permission or clarification.
pub fn is_request(kind: &str) -> bool {
    kind == PERMISSION_REQUEST || kind == CLARIFICATION_REQUEST
}

/// The metadata of a tool call once its turn is complete; none where the call is not pending, or is no tool call.
pub fn completed_tool(kind: &str, metadata: &str) -> Option<String> {
    let mut members = Metadata::parse(metadata).ok()?;
    let ended = matches!(members.get("status"), Some("\"complete\"" | "\"error\""));
    if !is_tool(kind, &members) || ended {
        return None;
    }
    members.set("status", "\"complete\"");
    Some(members.to_string())
}

/// The metadata of a request once it is answered with `status`.
///
/// # Errors
/// [`BadMutation::NotARequest`], [`BadMutation::AlreadyResolved`], and [`BadMutation::InvalidMetadata`] where the stored text is no object.
pub fn resolved_request(kind: &str, metadata: &str, status: &str) -> Result<String, BadMutation> {
    if !is_request(kind) {
        return Err(BadMutation::NotARequest);
    }
    let mut members = Metadata::parse(metadata)?;
    if !matches!(members.get("status"), None | Some("null" | "\"\"" | "\"pending\"")) {
        return Err(BadMutation::AlreadyResolved);
    }
    let status = serde_json::Value::from(status).to_string();
    members.set("status", &status);
    Ok(members.to_string())
}

/// The metadata after `change`.
///
/// # Errors
/// [`BadMutation::InvalidMetadata`] where the change, or what it is merged into, is no JSON object with distinct members.
pub fn changed_metadata(stored: &str, change: &MetadataChange) -> Result<String, BadMutation> {
    match change {
        MetadataChange::Replace(text) => {
            Metadata::parse(text)?;
            ensure_text(text)?;
            Ok(text.clone())
        }
        MetadataChange::Merge(text) => {
            let changes = Metadata::parse(text)?;
            let mut members = Metadata::parse(stored)?;
            for (name, value) in changes.members() {
                if value == "null" {
                    members.remove(name);
                } else {
                    members.set(name, value);
                }
            }
            Ok(members.to_string())
        }
    }
}

/// When a prompt is stored as created: after every prompt of the session that is there.
///
/// # Errors
/// [`BadMutation::NotAfterPrompts`] where an imported time is not later, or no time is left.
pub fn prompt_time(
    imported: Option<WallTime>,
    at: WallTime,
    newest: Option<WallTime>,
) -> Result<WallTime, BadMutation> {
    let newest = newest.map(WallTime::cut_to_micros);
    let wanted = imported.unwrap_or(at).cut_to_micros();
    match newest {
        Some(newest) if wanted <= newest && imported.is_some() => Err(BadMutation::NotAfterPrompts),
        Some(newest) if wanted <= newest => newest.next_micro().ok_or(BadMutation::NotAfterPrompts),
        _ => Ok(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_turns_say_so_in_four_spellings() {
        for (metadata, wanted) in [
            (r#"{"prompt_dispatch_pending":true}"#, true),
            (r#"{"prompt_dispatch_pending":"true"}"#, true),
            (r#"{"a":[1,{"b":2}],"prompt_dispatch_pending": 1 }"#, true),
            (r#"{"prompt_dispatch_pending":"1"}"#, true),
            (r#"{"prompt_dispatch_pending":false}"#, false),
            (r#"{"prompt_dispatch_pending":null}"#, false),
            (r#"{"prompt_dispatch_pending":[true]}"#, false),
            (r#"{"nested":{"prompt_dispatch_pending":true}}"#, false),
            ("{}", false),
            ("", false),
            ("not json", false),
        ] {
            assert_eq!(is_reserved(metadata), wanted, "{metadata}");
        }
    }

    #[test]
    fn pending_tools_are_completed_and_others_stay() {
        let cases = [
            (
                "tool_call",
                r#"{"tool_call_id":"c1","status":"in_progress","n":1.50}"#,
                Some(r#"{"tool_call_id":"c1","status":"complete","n":1.50}"#),
            ),
            ("tool_read", r#"{"tool_call_id":"c1"}"#, Some(r#"{"tool_call_id":"c1","status":"complete"}"#)),
            ("tool_call", r#"{"tool_call_id":"c1","status":"complete"}"#, None),
            ("tool_call", r#"{"tool_call_id":"c1","status":"error"}"#, None),
            ("tool_call", r#"{"tool_call_id":null}"#, None),
            ("permission_request", r#"{"tool_call_id":"c1"}"#, None),
            ("message", "{}", None),
            ("tool_call", r#"{"tool_call_id":"c1""#, None),
        ];
        for (kind, metadata, wanted) in cases {
            assert_eq!(completed_tool(kind, metadata).as_deref(), wanted, "{kind} {metadata}");
        }
    }

    #[test]
    fn a_request_is_answered_once() {
        let answered = resolved_request(PERMISSION_REQUEST, r#"{"pending_id":"p"}"#, "approved");
        assert_eq!(answered.as_deref(), Ok(r#"{"pending_id":"p","status":"approved"}"#));
        let again = resolved_request(CLARIFICATION_REQUEST, r#"{"status":"rejected"}"#, "approved");
        assert_eq!(again, Err(BadMutation::AlreadyResolved));
        assert_eq!(resolved_request("message", "{}", "approved"), Err(BadMutation::NotARequest));
        assert_eq!(resolved_request(PERMISSION_REQUEST, "[]", "approved"), Err(BadMutation::InvalidMetadata));
    }

    #[test]
    fn merging_keeps_what_is_not_named() {
        let merge =
            |stored: &str, change: &str| changed_metadata(stored, &MetadataChange::Merge(change.into()));
        assert_eq!(
            merge(r#"{"z":1e2, "a":"\u00e9","gone":0}"#, r#"{"gone":null,"a":[ 1 ],"new":{}}"#).as_deref(),
            Ok(r#"{"z":1e2,"a":[ 1 ],"new":{}}"#)
        );
        for bad in ["", "[]", "null", r#"{"a":1,"a":2}"#, r#"{"a":1}x"#, r#"{"a":01}"#] {
            assert_eq!(merge("{}", bad), Err(BadMutation::InvalidMetadata), "{bad}");
            assert_eq!(merge(bad, "{}"), Err(BadMutation::InvalidMetadata), "{bad}");
        }
    }

    #[test]
    fn a_prompt_is_later_than_the_prompts_before_it() {
        let time = |micros: i64| WallTime::from_unix_micros(micros).unwrap();
        assert_eq!(prompt_time(None, time(5), None), Ok(time(5)));
        assert_eq!(prompt_time(None, time(5), Some(time(4))), Ok(time(5)));
        assert_eq!(prompt_time(None, time(5), Some(time(5))), Ok(time(6)));
        assert_eq!(prompt_time(None, time(1), Some(time(5))), Ok(time(6)));
        assert_eq!(prompt_time(Some(time(6)), time(1), Some(time(5))), Ok(time(6)));
        assert_eq!(prompt_time(Some(time(5)), time(9), Some(time(5))), Err(BadMutation::NotAfterPrompts));
    }
}
