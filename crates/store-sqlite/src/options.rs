//! How a file is opened.

use std::num::NonZeroU8;
use std::time::Duration;

use headwater_store::ContentLimit;

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// With the next checkpoint: a power failure may lose the newest commits, never the order of them and never the file. Clients see the
    /// loss as a revision below the highest they know, in a new epoch.
    #[default]
    Normal,
    /// With the commit itself.
    Full,
}

/// Options of [`SqliteStore::open`](crate::SqliteStore::open).
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// When a commit is on the disk.
    pub synchronous: Synchronous,
    /// How many pages can be read at the same time.
    pub readers: NonZeroU8,
    /// How long a batch waits while another program writes to the file.
    pub busy_timeout: Duration,
    /// Most bytes of content in one message.
    pub content_limit: ContentLimit,
}

impl Default for SqliteOptions {
    /// `NORMAL`, four readers, five seconds, 16 MiB.
    fn default() -> Self {
        Self {
            synchronous: Synchronous::default(),
            readers: NonZeroU8::new(4).unwrap_or(NonZeroU8::MIN),
            busy_timeout: Duration::from_secs(5),
            content_limit: ContentLimit::default(),
        }
    }
}
