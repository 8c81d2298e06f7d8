//! What the first bytes of a row say about it.
//!
//! Rows are large and their decisive members stand early, so a caller reads a prefix (some hundred bytes), asks, and reads on only
//! where the answer is [`Facts::NeedMore`]. A prefix may end anywhere, also inside a character or an escape; the order of members
//! is arbitrary. For every prefix the answer is `NeedMore` or the answer for the whole row. `Known` does not promise that the rest of
//! the row can be read: what is rewritten is scanned whole ([`crate::rewrite`], [`crate::assistant_items`]).

mod event;
mod message;
mod part;
mod walk;

pub use event::{Entity, EntityKind, event_entity};
pub use message::{MessageFacts, Role, completion, message_facts};
pub use part::{PartFacts, PartKind, ToolStatus, part_facts};

/// An answer from a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts<T> {
    /// The answer; more bytes don't change it.
    Known(T),
    /// Undecided within the prefix. Never answered for a whole row.
    NeedMore,
    /// Not the JSON object that it should be.
    Unreadable,
}

impl<T> Facts<T> {
    /// The answer, where there is one.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(facts) => Some(facts),
            Self::NeedMore | Self::Unreadable => None,
        }
    }
}

#[cfg(test)]
mod tests;
