//! What can be learned about running servers before the lock.

/// Who else has the database file open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    /// Nobody but this process.
    Nobody,
    /// Some other process.
    Others,
    /// The system does not tell. Counts as [`Holders::Others`].
    Unknown,
}

/// What the servers say about one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A server says that it works on the session.
    Busy,
    /// Every server that holds the file says that it does not.
    Idle,
    /// Some server did not answer, or asked for a password. Proves nothing.
    Unknown,
}

/// Asks the system and the servers that hold the file. Called before the lock, never while it is held.
pub trait ServerProbe: Sync {
    /// Who else has the file open at this moment.
    fn holders(&self) -> Holders;

    /// Lets the servers prepare what they need to answer about `directory`, which may take long where they were not asked about it before.
    /// What they say meanwhile does not count.
    fn warm(&self, _directory: &str) {}

    /// Whether a server works on `session`, whose directory is `directory`. The answer is per server and directory (fact A9).
    fn activity(&self, session: &str, directory: &str) -> Activity;
}

/// For databases that cannot have a server: a copy, a file in a test.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServers;

impl ServerProbe for NoServers {
    fn holders(&self) -> Holders {
        Holders::Nobody
    }

    fn activity(&self, _session: &str, _directory: &str) -> Activity {
        Activity::Idle
    }
}
