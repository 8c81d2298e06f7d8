//! Which event rows are copies that a newer copy of the same entity replaced (fact A4).

use std::collections::HashSet;

/// The event types whose rows hold a full copy of their entity, so that an older row says nothing that the newest does not. Every
/// other type (created, removed, unknown, any later version) stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyType {
    /// `session.updated.1`: a copy of the session.
    Session,
    /// `message.updated.1`: a copy of the message, with the patches in its summary.
    Message,
    /// `message.part.updated.1`: a copy of the part.
    Part,
}

impl CopyType {
    /// The copy type of an event type, `None` where rows of that type are no copies.
    pub fn of(event_type: &str) -> Option<Self> {
        match event_type {
            "session.updated.1" => Some(Self::Session),
            "message.updated.1" => Some(Self::Message),
            "message.part.updated.1" => Some(Self::Part),
            _ => None,
        }
    }
}

/// The entities of one aggregate whose newest copy was seen, for a walk over its rows from the highest `seq` down.
#[derive(Debug, Default)]
pub struct NewestCopies {
    seen: [HashSet<Box<str>>; 3],
}

impl NewestCopies {
    /// Forgets everything, for the next aggregate; keeps the memory.
    pub fn clear(&mut self) {
        self.seen.iter_mut().for_each(HashSet::clear);
    }

    /// Takes the next row in descending `seq` and says whether a newer copy of `entity` came before it. A row whose entity cannot
    /// be read is not shown here: it stays, and does not stand for the newest copy of anything.
    pub fn is_superseded(&mut self, copy: CopyType, entity: &str) -> bool {
        let seen = &mut self.seen[copy as usize];
        if seen.contains(entity) {
            return true;
        }
        seen.insert(entity.into());
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_copy_of_each_entity_and_type_stays() {
        let mut newest = NewestCopies::default();
        let rows = [
            (CopyType::Part, "a", false),
            (CopyType::Message, "a", false),
            (CopyType::Part, "a", true),
            (CopyType::Part, "b", false),
            (CopyType::Session, "a", false),
            (CopyType::Part, "b", true),
            (CopyType::Message, "a", true),
        ];
        for (at, (copy, entity, superseded)) in rows.into_iter().enumerate() {
            assert_eq!(newest.is_superseded(copy, entity), superseded, "row {at}");
        }
        newest.clear();
        assert!(!newest.is_superseded(CopyType::Part, "a"));
    }

    #[test]
    fn rows_of_other_types_and_versions_are_no_copies() {
        for kind in [
            "session.created.1",
            "message.removed.1",
            "message.part.removed.1",
            "message.updated.2",
            "message.updated",
            "",
        ] {
            assert_eq!(CopyType::of(kind), None, "{kind}");
        }
    }
}
