//! The classes of content that may go (P15).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One kind of content that a person can choose to remove, by name (P15). The order is the order in which plans list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Class {
    /// Event rows that a newer copy of the same entity has replaced; the newest copy and every other type stay.
    SupersededEvents,
    /// Every event row of a session whose rows are complete; the sequence counter stays (fact A4).
    Events,
    /// Patches in `summary.diffs` of user messages (1.x).
    Diffs,
    /// Second copies of tool output and diffs in the metadata of completed tools.
    Metadata,
    /// Inline `data:` files of finished turns.
    Attachments,
    /// Tool output that OpenCode itself marked as compacted and no longer sends.
    Compacted,
    /// Finished tool calls and reasoning of completed assistant messages, removed whole (P4).
    Technical,
    /// Rows of one layout whose session was deleted in the other, on evidence only.
    Leftover,
    /// Whole session trees by last use.
    Sessions,
}

/// What a class changes in the next request to the model (fact A6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelEffect {
    /// The next request is the same, byte for byte.
    Nothing,
    /// Calls stay, some results or attachments are shorter.
    ShorterResults,
    /// Calls, their results and reasoning are gone from the history.
    CallsVanish,
    /// The session itself is gone.
    SessionsVanish,
}

impl Class {
    /// Every class, in order.
    pub const ALL: [Self; 9] = [
        Self::SupersededEvents,
        Self::Events,
        Self::Diffs,
        Self::Metadata,
        Self::Attachments,
        Self::Compacted,
        Self::Technical,
        Self::Leftover,
        Self::Sessions,
    ];

    /// The name used on the command line, in plans, receipts and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SupersededEvents => "superseded-events",
            Self::Events => "events",
            Self::Diffs => "diffs",
            Self::Metadata => "metadata",
            Self::Attachments => "attachments",
            Self::Compacted => "compacted",
            Self::Technical => "technical",
            Self::Leftover => "leftover",
            Self::Sessions => "sessions",
        }
    }

    /// What the class changes for the model.
    pub const fn model_effect(self) -> ModelEffect {
        match self {
            Self::SupersededEvents
            | Self::Events
            | Self::Diffs
            | Self::Metadata
            | Self::Compacted
            | Self::Leftover => ModelEffect::Nothing,
            Self::Attachments => ModelEffect::ShorterResults,
            Self::Technical => ModelEffect::CallsVanish,
            Self::Sessions => ModelEffect::SessionsVanish,
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown class; the classes are superseded-events, events, diffs, metadata, attachments, compacted, technical, leftover, sessions"
)]
pub struct UnknownClass;

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        Self::ALL.into_iter().find(|class| class.name() == text).ok_or(UnknownClass)
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Classes(u16);

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);

    /// The set with `class` added.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | class.bit())
    }

    /// Whether `class` is in the set.
    pub const fn has(self, class: Class) -> bool {
        self.0 & class.bit() != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, in the order of [`Class::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |class| self.has(*class))
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        classes.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_its_class() {
        for class in Class::ALL {
            assert_eq!(class.name().parse(), Ok(class));
        }
        assert_eq!("text".parse::<Class>(), Err(UnknownClass));
    }

    #[test]
    fn a_set_lists_its_members_in_order() {
        let set: Classes = [Class::Technical, Class::Events].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Class::Events, Class::Technical]);
    }
}
