//! Which members of stored JSON hold text, for both layouts (facts A3, A4, A11, B2). Pure tables; anything unknown is searched as
//! [`Field::Other`], so that a later version of OpenCode hides nothing.

use super::field::Field;

/// An object whose members have a known meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `part.data` of 1.x, or `part` of an event.
    Part,
    /// `message.data` of 1.x, or `info` of an event (which may also be a session).
    Message,
    /// `summary` of a message.
    Summary,
    /// One element of `summary.diffs`.
    Diff,
    /// `state` of a tool call.
    ToolState,
    /// One element of a tool result, or an attached file.
    OutputItem,
    /// `session_message.data` of an assistant.
    Assistant,
    /// One element of its `content`.
    Item,
    /// `session_message.data` of user, system and synthetic rows.
    Prompt,
    /// `session_message.data` of a shell row.
    Shell,
    /// `output` of a shell row.
    ShellOutput,
    /// `session_message.data` of a compaction row.
    Compaction,
    /// `session_message.data` of a kind without text.
    Marker,
    /// `session_message.data` of an unknown kind, and any event that is not a snapshot.
    Unknown,
    /// `event.data`.
    Event,
}

/// A member that says something about the object it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// `type` of a part or item.
    Type,
    /// Name of the tool; also searched.
    Tool,
    /// `role` of a message.
    Role,
    /// `id`.
    Id,
    /// `messageID`.
    MessageId,
}

/// What to do with the value of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// No text in it.
    Skip,
    /// A string to search. Another kind of value is passed over.
    Text(Field),
    /// Every string below, but no keys.
    Tree(Field),
    /// An object of this shape, or an array of such objects.
    Object(Shape),
    /// The array whose elements are items of a message: each is counted and has hits of its own.
    Items,
    /// A string to remember.
    Keep(Slot),
    /// `synthetic` of a 1.x text part.
    Synthetic,
}

impl Shape {
    /// The shape of `session_message.data` for the `type` column.
    pub(crate) fn of_row_type(row_type: &str) -> Self {
        match row_type {
            "assistant" => Self::Assistant,
            "user" | "system" | "synthetic" => Self::Prompt,
            "shell" => Self::Shell,
            "compaction" => Self::Compaction,
            "idle" | "agent-switched" | "model-switched" | "location-switched" => Self::Marker,
            _ => Self::Unknown,
        }
    }

    /// What to do with member `key`.
    pub(crate) fn member(self, key: &str) -> Visit {
        match self {
            Self::Part => part(key),
            Self::Message => message(key),
            Self::Summary => match key {
                "title" | "body" => Visit::Text(Field::Compaction),
                "diffs" => Visit::Object(Self::Diff),
                _ => Visit::Skip,
            },
            Self::Diff => match key {
                "file" | "patch" | "before" | "after" => Visit::Text(Field::Diff),
                _ => Visit::Skip,
            },
            Self::ToolState => tool_state(key),
            Self::OutputItem => match key {
                "text" | "name" | "filename" | "path" | "value" => Visit::Text(Field::ToolOutput),
                "url" | "uri" => Visit::Text(Field::Attachment),
                "source" => Visit::Object(Self::OutputItem),
                _ => Visit::Skip,
            },
            Self::Assistant => match key {
                "content" => Visit::Items,
                "error" | "retry" => Visit::Tree(Field::Error),
                "time" | "agent" | "model" | "snapshot" | "finish" | "rawFinish" | "native" | "cost"
                | "tokens" | "id" | "metadata" => Visit::Skip,
                _ => Visit::Tree(Field::Other),
            },
            Self::Item => item(key),
            Self::Prompt => match key {
                "text" | "description" => Visit::Text(Field::Text),
                "files" => Visit::Object(Self::OutputItem),
                "time" | "agents" | "skills" | "metadata" | "id" => Visit::Skip,
                _ => Visit::Tree(Field::Other),
            },
            Self::Shell => match key {
                "command" => Visit::Text(Field::Shell),
                "output" => Visit::Object(Self::ShellOutput),
                "time" | "shellID" | "callID" | "status" | "id" | "metadata" => Visit::Skip,
                _ => Visit::Tree(Field::Other),
            },
            Self::ShellOutput => match key {
                "output" => Visit::Text(Field::Shell),
                _ => Visit::Skip,
            },
            Self::Compaction => match key {
                "summary" | "recent" => Visit::Text(Field::Compaction),
                "time" | "status" | "reason" | "id" | "metadata" => Visit::Skip,
                _ => Visit::Tree(Field::Other),
            },
            Self::Marker => Visit::Skip,
            Self::Unknown => match key {
                "text" => Visit::Text(Field::Text),
                other => unknown(other),
            },
            Self::Event => match key {
                "part" => Visit::Object(Self::Part),
                "info" => Visit::Object(Self::Message),
                "messageID" => Visit::Keep(Slot::MessageId),
                "text" => Visit::Text(Field::Text),
                other => unknown(other),
            },
        }
    }

    /// The field that a text of [`Field::Text`], found in this object, belongs to once the object's `type` is known; `None` where
    /// this kind of object has no such text.
    pub(crate) fn settle(self, field: Field, kind: Option<&str>) -> Option<Field> {
        if !matches!(self, Self::Part | Self::Item) {
            return Some(field);
        }
        let is_of = |field: Field| match field {
            Field::Text => kind != Some("reasoning"),
            Field::ToolName
            | Field::ToolInput
            | Field::ToolOutput
            | Field::ToolError
            | Field::ToolTitle
            | Field::ToolMetadata => kind == Some("tool"),
            Field::Subtask => kind == Some("subtask"),
            Field::Patch => kind == Some("patch"),
            Field::Other => !matches!(
                kind,
                Some(
                    "text"
                        | "reasoning"
                        | "tool"
                        | "step-start"
                        | "step-finish"
                        | "patch"
                        | "file"
                        | "compaction"
                )
            ),
            Field::Attachment
            | Field::Error
            | Field::Title
            | Field::Reasoning
            | Field::System
            | Field::Shell
            | Field::Compaction
            | Field::Diff => true,
        };
        match (field, kind) {
            (Field::Text, Some("reasoning")) => Some(Field::Reasoning),
            _ if is_of(field) => Some(field),
            // An unknown kind may use known names for something else.
            _ if is_of(Field::Other) => Some(Field::Other),
            _ => None,
        }
    }
}

fn part(key: &str) -> Visit {
    match key {
        "type" => Visit::Keep(Slot::Type),
        "id" => Visit::Keep(Slot::Id),
        "messageID" => Visit::Keep(Slot::MessageId),
        "tool" => Visit::Keep(Slot::Tool),
        "text" => Visit::Text(Field::Text),
        "state" => Visit::Object(Shape::ToolState),
        "synthetic" => Visit::Synthetic,
        "filename" | "url" => Visit::Text(Field::Attachment),
        "source" => Visit::Tree(Field::Attachment),
        "prompt" | "description" | "command" => Visit::Text(Field::Subtask),
        "files" => Visit::Tree(Field::Patch),
        "error" => Visit::Tree(Field::Error),
        "sessionID" | "callID" | "hash" | "snapshot" | "time" | "cost" | "tokens" | "reason" | "mime" => {
            Visit::Skip
        }
        _ => Visit::Tree(Field::Other),
    }
}

fn message(key: &str) -> Visit {
    match key {
        "role" => Visit::Keep(Slot::Role),
        "id" => Visit::Keep(Slot::Id),
        "title" => Visit::Text(Field::Title),
        "system" => Visit::Tree(Field::System),
        "summary" => Visit::Object(Shape::Summary),
        "error" => Visit::Tree(Field::Error),
        "sessionID" | "parentID" | "projectID" | "workspaceID" | "time" | "agent" | "mode" | "model"
        | "modelID" | "providerID" | "variant" | "path" | "cost" | "tokens" | "finish" | "tools"
        | "format" | "slug" | "directory" | "version" | "permission" | "share" | "revert" => Visit::Skip,
        _ => Visit::Tree(Field::Other),
    }
}

fn item(key: &str) -> Visit {
    match key {
        "type" => Visit::Keep(Slot::Type),
        "name" => Visit::Keep(Slot::Tool),
        "text" => Visit::Text(Field::Text),
        "state" => Visit::Object(Shape::ToolState),
        "id" | "native" | "executed" | "provider" | "providerState" | "providerResultState" | "time" => {
            Visit::Skip
        }
        _ => Visit::Tree(Field::Other),
    }
}

fn tool_state(key: &str) -> Visit {
    match key {
        "input" | "raw" => Visit::Tree(Field::ToolInput),
        "output" => Visit::Text(Field::ToolOutput),
        "content" | "attachments" => Visit::Object(Shape::OutputItem),
        "outputPaths" => Visit::Tree(Field::ToolOutput),
        "error" => Visit::Tree(Field::ToolError),
        "title" => Visit::Text(Field::ToolTitle),
        "status" | "time" => Visit::Skip,
        _ => Visit::Tree(Field::ToolMetadata), // metadata, structured, and what is not known
    }
}

fn unknown(key: &str) -> Visit {
    let is_id = key == "id" || key.ends_with("ID") || key.ends_with("Id");
    if is_id || key == "type" || key == "time" { Visit::Skip } else { Visit::Tree(Field::Other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_decides_what_a_text_is() {
        assert_eq!(Shape::Part.settle(Field::Text, Some("text")), Some(Field::Text));
        assert_eq!(Shape::Part.settle(Field::Text, Some("reasoning")), Some(Field::Reasoning));
        assert_eq!(Shape::Part.settle(Field::Other, Some("reasoning")), None);
        assert_eq!(Shape::Item.settle(Field::ToolOutput, Some("reasoning")), None);
        assert_eq!(Shape::Item.settle(Field::Other, Some("hologram")), Some(Field::Other));
        assert_eq!(Shape::Item.settle(Field::ToolOutput, Some("hologram")), Some(Field::Other));
        assert_eq!(Shape::Part.settle(Field::Text, None), Some(Field::Text));
    }

    #[test]
    fn ids_and_keys_of_unknown_rows_are_not_text() {
        assert_eq!(Shape::Unknown.member("sessionID"), Visit::Skip);
        assert_eq!(Shape::Unknown.member("note"), Visit::Tree(Field::Other));
        assert_eq!(Shape::of_row_type("skill"), Shape::Unknown);
        assert_eq!(Shape::of_row_type("idle").member("outcome"), Visit::Skip);
    }
}
