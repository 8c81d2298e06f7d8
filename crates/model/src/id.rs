//! Identifiers of stored rows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest id in characters (P2).
const ID_CHARS_MAX: usize = 256;

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// The text is empty.
    #[error("id is empty")]
    Empty,
    /// The text has more than 256 characters (P2).
    #[error("id has {chars} characters, the longest allowed has {ID_CHARS_MAX}")]
    TooLong {
        /// Characters (Unicode scalar values) of the text.
        chars: usize,
    },
}

fn ensure_id(text: &str) -> Result<(), IdError> {
    let chars = text.chars().count();
    match chars {
        0 => Err(IdError::Empty),
        1..=ID_CHARS_MAX => Ok(()),
        _ => Err(IdError::TooLong { chars }),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Takes `text` as an id of 1 to 256 characters.
            ///
            /// # Errors
            /// [`IdError`] where the text is empty or longer (P2).
            pub fn new(text: impl Into<Box<str>>) -> Result<Self, IdError> {
                let text = text.into();
                ensure_id(&text)?;
                Ok(Self(text))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Id of a session (`ses_…` in OpenCode, in either layout), or of a session of the conversation store.
    SessionId
);
id!(
    /// Id of a message (`msg_…`): a row of `message` (1.x), `session_message` (2.x) or `task_session_messages` (conversation store).
    MessageId
);
id!(
    /// Id of a part (`prt_…`, 1.x only).
    PartId
);
id!(
    /// Id of an event row (`evt_…`).
    EventId
);
id!(
    /// Id of a turn: one prompt and what the agent did for it (conversation store only).
    TurnId
);
id!(
    /// Id of a task, which owns sessions (conversation store only).
    TaskId
);
id!(
    /// Id of a workspace, which owns tasks (conversation store only).
    WorkspaceId
);
id!(
    /// Id of a project: hash of the repository's root commit, or `global` (fact A1).
    ProjectId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_characters_and_not_bytes() {
        assert_eq!(SessionId::new(""), Err(IdError::Empty));
        assert!(SessionId::new("数".repeat(256)).is_ok());
        assert_eq!(SessionId::new("数".repeat(257)), Err(IdError::TooLong { chars: 257 }));
    }

    #[test]
    fn json_refuses_what_the_constructor_refuses() {
        assert!(serde_json::from_str::<MessageId>("\"\"").is_err());
        assert_eq!(serde_json::to_string(&MessageId::new("msg_1").unwrap()).unwrap(), "\"msg_1\"");
    }
}
