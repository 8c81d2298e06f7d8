//! Where in a conversation a text stands.

use serde::Serialize;

/// The field that holds a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// Title of a session.
    Title,
    /// What somebody wrote or the model answered; [`Origin`] says who.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// A system prompt or system notice.
    System,
    /// Command and output of a shell that the user ran.
    Shell,
    /// Summary that replaced older messages.
    Compaction,
    /// Prompt, description or command of a subtask.
    Subtask,
    /// Name or path of an attached file.
    Attachment,
    /// Error of a message.
    Error,
    /// Name of a tool.
    ToolName,
    /// Argument of a tool call.
    ToolInput,
    /// What a tool answered.
    ToolOutput,
    /// Error of a tool call.
    ToolError,
    /// Title of a tool call.
    ToolTitle,
    /// Tool metadata, which often repeats output or holds a diff. Only where no other field of the call matches.
    ToolMetadata,
    /// File name or patch in the diff summary of a message.
    Diff,
    /// File name of a patch part.
    Patch,
    /// Text in a member or a kind of row that is not known here.
    Other,
}

impl Field {
    /// Whether the field is machinery and not conversation: searched only when asked for.
    pub fn is_technical(self) -> bool {
        match self {
            Self::Title
            | Self::Text
            | Self::Reasoning
            | Self::System
            | Self::Shell
            | Self::Compaction
            | Self::Subtask
            | Self::Attachment
            | Self::Error => false,
            Self::ToolName
            | Self::ToolInput
            | Self::ToolOutput
            | Self::ToolError
            | Self::ToolTitle
            | Self::ToolMetadata
            | Self::Diff
            | Self::Patch
            | Self::Other => true,
        }
    }
}

/// Who or what a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// OpenCode's system notices.
    System,
    /// Text that OpenCode put into a message on its own.
    Synthetic,
    /// A shell that the user ran.
    Shell,
    /// A compaction.
    Compaction,
    /// Anything else, or not known.
    Other,
}
