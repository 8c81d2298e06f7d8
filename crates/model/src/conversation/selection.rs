//! Which records of a session somebody looks at.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::TaskId;
use crate::conversation::Place;

/// Who wrote a message, as far as a selection tells authors apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// A person.
    User,
    /// The agent, its tools included.
    Agent,
}

impl Author {
    /// The author type as it is stored.
    pub const fn stored(self) -> &'static str {
        match self {
            Self::User => crate::conversation::USER,
            Self::Agent => "agent",
        }
    }
}

/// Which records of one session are selected (C7). Authors say nothing about turns, which have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selection {
    /// Only rows that name this task; none for the whole session.
    pub task: Option<TaskId>,
    /// Only messages of these authors; none for all.
    pub authors: Option<BTreeSet<Author>>,
}

impl Selection {
    /// Whether a record that stands at `place` is selected.
    pub fn admits(&self, place: &Place) -> bool {
        let of_task = self.task.as_ref().is_none_or(|task| place.task_id.as_deref() == Some(task.as_str()));
        let by_author = match (&self.authors, &place.author_type) {
            (Some(authors), Some(author)) => authors.iter().any(|wanted| wanted.stored() == author),
            _ => true,
        };
        of_task && by_author
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::OrderKey;

    fn place(task: Option<&str>, author: Option<&str>) -> Place {
        Place {
            task_id: task.map(str::to_owned),
            author_type: author.map(str::to_owned),
            order: OrderKey { time: None, id: "m1".to_owned() },
        }
    }

    #[test]
    fn a_selection_tells_by_task_and_author() {
        let prompts = Selection {
            task: Some(TaskId::new("t1").unwrap()),
            authors: Some(BTreeSet::from([Author::User])),
        };
        let cases = [
            (place(Some("t1"), Some("user")), true),
            (place(Some("t1"), Some("agent")), false),
            (place(Some("t1"), Some("")), false),
            (place(Some("t2"), Some("user")), false),
            (place(None, Some("user")), false),
            // A turn has no author.
            (place(Some("t1"), None), true),
        ];
        for (place, wanted) in cases {
            assert_eq!(prompts.admits(&place), wanted, "{place:?}");
            assert!(Selection::default().admits(&place));
        }
    }
}
