//! One prune at a time per database and state file.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::thread;
use std::time::{Duration, Instant};

use super::{DatabaseKey, StateError, StateErrorKind, StateFile};

/// The right to write intents for one database. The kernel takes it back when the process ends, however it ends: every intent
/// that the holder finds was left by a process that is gone, and is to be resolved before anything else is pruned.
#[derive(Debug)]
pub struct DatabaseClaim {
    /// Keeps the lock; closing it releases.
    _lock: File,
}

impl StateFile {
    /// Takes the claim on `database`, waiting at most `wait` for another holder.
    ///
    /// # Errors
    /// [`StateErrorKind::Busy`] where another process keeps it, or an error of the file system.
    pub fn claim(&self, database: DatabaseKey, wait: Duration) -> Result<DatabaseClaim, StateError> {
        const PAUSE: Duration = Duration::from_millis(10);
        let since = Instant::now();
        let lock = self.lock_file(database)?;
        loop {
            let kind = match lock.try_lock() {
                Ok(()) => return Ok(DatabaseClaim { _lock: lock }),
                Err(TryLockError::WouldBlock) if since.elapsed() < wait => {
                    thread::sleep(PAUSE);
                    continue;
                }
                Err(TryLockError::WouldBlock) => StateErrorKind::Busy,
                Err(TryLockError::Error(error)) => error.into(),
            };
            return Err(StateError { path: self.path.clone(), kind });
        }
    }

    /// The lock file beside the state file. It is never removed: a holder of a removed name would exclude nobody.
    fn lock_file(&self, database: DatabaseKey) -> Result<File, StateError> {
        let mut path = self.path.clone().into_os_string();
        path.push(format!("-claim-{}", database.0));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| StateError { path: self.path.clone(), kind: error.into() })
    }
}
