//! The exit statuses, which scripts may rely on.

use std::process::ExitCode;

use serde::Serialize;

/// How a command ended. The numbers never change; README lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The work is done.
    Done,
    /// Any failure that has no status of its own; also a cancelled command.
    Other,
    /// The arguments make no sense together, or a confirmation is missing. Nothing was changed.
    Usage,
    /// Something holds the database or the session, or a rule refuses the removal. Nothing was changed.
    Blocked,
    /// There was nothing to do, or nothing was found.
    Nothing,
    /// The file is damaged, is no database, or its layout is not supported.
    Damaged,
}

impl Status {
    /// Every status, in the order of the numbers.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] =
        [Self::Done, Self::Other, Self::Usage, Self::Blocked, Self::Nothing, Self::Damaged];

    /// The number that the process ends with.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Other => 1,
            Self::Usage => 2,
            Self::Blocked => 3,
            Self::Nothing => 4,
            Self::Damaged => 5,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

impl Serialize for Status {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_readme() {
        assert_eq!(Status::ALL.map(Status::code), [0, 1, 2, 3, 4, 5]);
    }
}
