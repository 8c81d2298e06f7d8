//! The steps of a rebuild, by name (`docs/spec/rebuild-protocol.md`).

/// A step of the rebuild protocol. `observer.reached(step.name())` is called when the step is complete and the next has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Path, file system, neighbours and names of the file looked at; nothing locked.
    Checked,
    /// The exclusive lock is held.
    Locked,
    /// What an earlier killed run left behind is gone.
    Swept,
    /// What goes and what stays is known, and there is room and something to gain.
    Planned,
    /// The new file is there with its empty tables.
    Created,
    /// Every surviving row is in the new file.
    Copied,
    /// Indexes, triggers, views and virtual tables are in the new file.
    Indexed,
    /// The new file and its folder are on the disk.
    Synced,
    /// The new file holds exactly what survives.
    Verified,
    /// The old log is merged into the old file and empty.
    Checkpointed,
    /// A write lease on the old file is held: nobody else has it open.
    Leased,
    /// A short wait has passed and nobody waits in `open(2)`.
    Settled,
    /// The two files have exchanged their names.
    Exchanged,
    /// The exchange is on the disk.
    FolderSynced,
    /// The old file has no name, and nobody was held at it.
    Retired,
    /// In place only: the new content is committed in the old file's log.
    CopiedBack,
    /// In place only: the log is merged and empty.
    LogMerged,
}

impl Step {
    /// The steps where the lease is had, in order.
    pub const BY_LEASE: [Self; 15] = [
        Self::Checked,
        Self::Locked,
        Self::Swept,
        Self::Planned,
        Self::Created,
        Self::Copied,
        Self::Indexed,
        Self::Synced,
        Self::Verified,
        Self::Checkpointed,
        Self::Leased,
        Self::Settled,
        Self::Exchanged,
        Self::FolderSynced,
        Self::Retired,
    ];

    /// The steps where the content is copied back into the old file, in order.
    pub const IN_PLACE: [Self; 12] = [
        Self::Checked,
        Self::Locked,
        Self::Swept,
        Self::Planned,
        Self::Created,
        Self::Copied,
        Self::Indexed,
        Self::Synced,
        Self::Verified,
        Self::Checkpointed,
        Self::CopiedBack,
        Self::LogMerged,
    ];

    /// The name in traces and tests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Locked => "locked",
            Self::Swept => "swept",
            Self::Planned => "planned",
            Self::Created => "created",
            Self::Copied => "copied",
            Self::Indexed => "indexed",
            Self::Synced => "synced",
            Self::Verified => "verified",
            Self::Checkpointed => "checkpointed",
            Self::Leased => "leased",
            Self::Settled => "settled",
            Self::Exchanged => "exchanged",
            Self::FolderSynced => "folder-synced",
            Self::Retired => "retired",
            Self::CopiedBack => "copied-back",
            Self::LogMerged => "log-merged",
        }
    }
}
