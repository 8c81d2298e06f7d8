//! The instants of a prune that tests disturb.

/// A step that a prune has completed, in order. `docs/spec/prune-protocol.md` has a row for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// The claim on the database's receipts is held (state file only).
    Claimed,
    /// What a run that was killed left open is resolved (state file only).
    Resolved,
    /// What goes is in the archive, synced (with an archive only).
    Archived,
    /// The message was read, checked and its receipt looked for.
    Prepared,
    /// The intent is in the state file, synced (state file only).
    Intended,
    /// Servers and holders were asked; the lock is not taken.
    Asked,
    /// The write lock is held; nothing was checked under it.
    Locked,
    /// Everything was checked again under the lock.
    Checked,
    /// The change stands in the open transaction.
    Edited,
    /// The transaction is committed: every reader sees it, and a process that ends cannot lose it.
    Committed,
    /// The committed transactions are on disk: a power cut cannot lose them.
    Durable,
    /// The intent is resolved (state file only).
    Recorded,
    /// In bulk: rows of a field class were read and their new data computed; the lock is not taken.
    FieldsRead,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 13] = [
        Self::Claimed,
        Self::Resolved,
        Self::Archived,
        Self::Prepared,
        Self::Intended,
        Self::Asked,
        Self::Locked,
        Self::Checked,
        Self::Edited,
        Self::Committed,
        Self::Durable,
        Self::Recorded,
        Self::FieldsRead,
    ];

    /// The name that an observer is told.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claimed => "prune-claimed",
            Self::Resolved => "prune-resolved",
            Self::Prepared => "prune-prepared",
            Self::Archived => "prune-archived",
            Self::Intended => "prune-intended",
            Self::Asked => "prune-asked",
            Self::Locked => "prune-locked",
            Self::Checked => "prune-checked",
            Self::Edited => "prune-edited",
            Self::Committed => "prune-committed",
            Self::Durable => "prune-durable",
            Self::Recorded => "prune-recorded",
            Self::FieldsRead => "prune-fields-read",
        }
    }
}
