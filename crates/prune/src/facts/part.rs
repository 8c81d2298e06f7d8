//! Facts of 1.x parts.

use headwater_wire::json::{JsonError, Reader};
use serde::Serialize;

use super::Facts;
use super::walk::{Once, enter, facts, string};

/// The kind of a part (1.x, fact A3) or of a content item (2.x, fact B2: text, reasoning and tool only).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// Text of the user or the assistant.
    Text,
    /// Reasoning, with provider state.
    Reasoning,
    /// A tool call with its result.
    Tool,
    /// Begin of a model step.
    StepStart,
    /// End of a model step with its cost.
    StepFinish,
    /// Which files a step changed; needed for revert.
    Patch,
    /// An attached file.
    File,
    /// A request for compaction.
    Compaction,
    /// A request for a subagent.
    Subtask,
    /// A mention of an agent.
    Agent,
    /// A snapshot id.
    Snapshot,
    /// A failed attempt.
    Retry,
    /// Anything else, by its name; an empty name where `type` is missing or not a string.
    Unknown(Box<str>),
}

impl PartKind {
    /// The kind that a 1.x part names in `type`.
    pub fn from_part_type(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "reasoning" => Self::Reasoning,
            "tool" => Self::Tool,
            "step-start" => Self::StepStart,
            "step-finish" => Self::StepFinish,
            "patch" => Self::Patch,
            "file" => Self::File,
            "compaction" => Self::Compaction,
            "subtask" => Self::Subtask,
            "agent" => Self::Agent,
            "snapshot" => Self::Snapshot,
            "retry" => Self::Retry,
            other => Self::Unknown(other.into()),
        }
    }

    /// The kind that a 2.x content item names in `type`.
    pub fn from_item_type(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "reasoning" => Self::Reasoning,
            "tool" => Self::Tool,
            other => Self::Unknown(other.into()),
        }
    }

    /// The name as it is stored.
    pub fn name(&self) -> &str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::Tool => "tool",
            Self::StepStart => "step-start",
            Self::StepFinish => "step-finish",
            Self::Patch => "patch",
            Self::File => "file",
            Self::Compaction => "compaction",
            Self::Subtask => "subtask",
            Self::Agent => "agent",
            Self::Snapshot => "snapshot",
            Self::Retry => "retry",
            Self::Unknown(name) => name,
        }
    }
}

/// How far a tool call has come (facts A3, B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolStatus {
    /// Announced (1.x).
    Pending,
    /// Its arguments are arriving (2.x).
    Streaming,
    /// Running.
    Running,
    /// Finished with a result.
    Completed,
    /// Finished with an error.
    Error,
    /// A status of no known name.
    Unknown,
}

impl ToolStatus {
    /// The status that `name` names.
    pub fn from_name(name: &str) -> Self {
        match name {
            "pending" => Self::Pending,
            "streaming" => Self::Streaming,
            "running" => Self::Running,
            "completed" => Self::Completed,
            "error" => Self::Error,
            _ => Self::Unknown,
        }
    }

    /// Whether the call is over, so that it may be removed (P4).
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Completed | Self::Error)
    }
}

/// What a 1.x part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartFacts {
    /// Its kind.
    pub kind: PartKind,
    /// The name of the tool; `None` for other kinds.
    pub tool: Option<Box<str>>,
    /// The status of the call; `None` for other kinds and where a tool part has none.
    pub status: Option<ToolStatus>,
}

/// The facts of the part whose `data` begins with `prefix`. Of members that are repeated the first counts.
pub fn part_facts(prefix: &[u8], is_whole: bool) -> Facts<PartFacts> {
    facts(prefix, is_whole, |reader| {
        let mut seen = Seen::default();
        seen.read(reader)?;
        Ok(seen.conclude())
    })
}

#[derive(Default)]
struct Seen {
    kind: Option<PartKind>,
    tool: Once<Box<str>>,
    status: Once<ToolStatus>,
}

impl Seen {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), JsonError> {
        reader.begin_object()?;
        while let Some(key) = reader.next_member()? {
            if self.kind.is_none() && key.is("type") {
                self.kind = Some(PartKind::from_part_type(&string(reader)?.unwrap_or_default()));
            } else if !self.tool.is_met && key.is("tool") {
                self.tool.meet(string(reader)?);
            } else if !self.status.is_met && key.is("state") {
                self.read_state(reader)?;
            } else {
                reader.skip()?;
            }
            if self.is_decided() {
                break;
            }
        }
        Ok(())
    }

    fn read_state(&mut self, reader: &mut Reader<'_>) -> Result<(), JsonError> {
        if enter(reader)? {
            while let Some(key) = reader.next_member()? {
                if !self.status.is_met && key.is("status") {
                    self.status.meet(string(reader)?.map(|name| ToolStatus::from_name(&name)));
                    if self.is_decided() {
                        return Ok(());
                    }
                } else {
                    reader.skip()?;
                }
            }
        }
        self.status.is_met = true;
        Ok(())
    }

    fn is_decided(&self) -> bool {
        match self.kind {
            None => false,
            Some(PartKind::Tool) => self.tool.is_met && self.status.is_met,
            Some(_) => true,
        }
    }

    fn conclude(self) -> PartFacts {
        let kind = self.kind.unwrap_or(PartKind::Unknown("".into()));
        let is_tool = kind == PartKind::Tool;
        PartFacts {
            tool: self.tool.value.filter(|_| is_tool),
            status: self.status.value.filter(|_| is_tool),
            kind,
        }
    }
}
