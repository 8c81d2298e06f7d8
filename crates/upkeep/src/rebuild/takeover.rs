//! Putting a verified file in the place of a locked database, so that a process that opens the path at any instant gets the old
//! database, an error, or the new one (`docs/spec/rebuild-protocol.md`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::backup::Backup;
use rustix::fs::{CWD, RenameFlags};

use crate::observer::{Observer, Progress, Unit};
use crate::os::{FileIdentity, LeaseRefused, WriteLease};
use crate::rebuild::error::{Doing, Named, RebuildErrorKind};
use crate::rebuild::exclusive::ExclusiveDatabase;
use crate::rebuild::place::sync_folder;
use crate::rebuild::temporary::TemporaryFile;
use crate::rebuild::{Step, Way};
use crate::rebuild::{connect, pages};

/// How long an `open(2)` that had looked the path up may take to arrive at the lease: it is a matter of microseconds unless its
/// thread is stopped there.
const ARRIVAL: Duration = Duration::from_millis(50);

/// Gives an `open(2)` under way the time to arrive.
fn wait_for_arrivals() {
    #[cfg(test)]
    WAITED.with(|waited| waited.set(waited.get() + ARRIVAL));
    thread::sleep(ARRIVAL);
}

#[cfg(test)]
thread_local! {
    /// How long this thread has waited for an `open(2)` to arrive.
    pub(crate) static WAITED: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

/// How the new content took over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) way: Way,
    /// Bytes added to the log of the old file.
    pub(crate) log_growth: u64,
    /// Milliseconds from the lock to its end.
    pub(crate) locked_ms: u64,
}

/// Puts the verified file `new` in the place of the locked database. The old one loses its name, or takes the name `kept`.
///
/// Where no exchange is possible and `in_place` is set, the content is copied back; there is no old file to keep then.
pub(crate) fn take_over(
    mut locked: ExclusiveDatabase,
    new: TemporaryFile,
    in_place: bool,
    kept: Option<&Path>,
    observer: &dyn Observer,
) -> Result<Taken, RebuildErrorKind> {
    let log_growth = locked.log_growth();
    if let Err(kind) = checkpoint(&locked, observer) {
        locked.release();
        return Err(kind);
    }
    let (new, reason) = match exchange(&locked, new, observer) {
        Ok(exchanged) => {
            let locked_ms = exchanged.retire(locked, kept, observer)?;
            return Ok(Taken { way: Way::Lease, log_growth, locked_ms });
        }
        Err(NotExchanged { new, reason }) => (new, reason),
    };
    let is_no_exchange = matches!(reason, RebuildErrorKind::NoLease { .. } | RebuildErrorKind::NoExchange);
    let outcome = if is_no_exchange && in_place && kept.is_none() {
        copy_back(&mut locked, &new, observer)
    } else if matches!(reason, RebuildErrorKind::NoLease { reason: LeaseRefused::OpenElsewhere }) {
        Err(RebuildErrorKind::InUse { holders: Named(locked.file().holders()) })
    } else {
        Err(reason)
    };
    let locked_ms = locked.held_ms();
    locked.release();
    outcome.map(|log_growth| Taken { way: Way::InPlace, log_growth, locked_ms })
}

fn checkpoint(locked: &ExclusiveDatabase, observer: &dyn Observer) -> Result<(), RebuildErrorKind> {
    locked.merge_log()?;
    observer.reached(Step::Checkpointed.name());
    if observer.is_cancelled() { Err(RebuildErrorKind::Cancelled) } else { Ok(()) }
}

/// Why the exchange did not take place, with the new file.
struct NotExchanged {
    new: TemporaryFile,
    reason: RebuildErrorKind,
}

/// The names are exchanged; the lock and the lease on the old file are still held.
struct Exchanged {
    lease: WriteLease,
    path: PathBuf,
    old: PathBuf,
    identity: FileIdentity,
}

/// Exchanges the names of the locked database and of `new`. The log of the old one is empty.
fn exchange(
    locked: &ExclusiveDatabase,
    mut new: TemporaryFile,
    observer: &dyn Observer,
) -> Result<Exchanged, NotExchanged> {
    let lease = match WriteLease::take(locked.identity()) {
        Ok(lease) => lease,
        Err(reason) => return Err(NotExchanged { new, reason: RebuildErrorKind::NoLease { reason } }),
    };
    observer.reached(Step::Leased.name());
    wait_for_arrivals();
    observer.reached(Step::Settled.name());
    new.let_go();
    if let Err(reason) = swap(locked, &new, &lease) {
        lease.release();
        return Err(NotExchanged { new, reason });
    }
    let path = locked.file().path().to_owned();
    let exchanged = Exchanged { lease, path, old: new.keep(), identity: locked.identity() };
    observer.reached(Step::Exchanged.name());
    Ok(exchanged)
}

fn swap(locked: &ExclusiveDatabase, new: &TemporaryFile, lease: &WriteLease) -> Result<(), RebuildErrorKind> {
    let path = locked.file().path();
    if !lease.is_whole() {
        return Err(RebuildErrorKind::NoLease { reason: LeaseRefused::OpenElsewhere });
    }
    ensure_identity(path, locked.identity())?;
    // With the lease whole nobody has the database open, so nobody uses these: an empty log, and an index of it that no one reads.
    for suffix in ["-wal", "-shm"] {
        match fs::remove_file(locked.file().beside(suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).doing("removing the empty log");
            }
            _ => {}
        }
    }
    rename_exchange(new.path(), path)?;
    if let Err(reason) = ensure_identity(new.path(), locked.identity()) {
        // Another file had taken the path in between: it gets its name back.
        rename_exchange(new.path(), path)?;
        return Err(reason);
    }
    Ok(())
}

fn ensure_identity(path: &Path, identity: FileIdentity) -> Result<(), RebuildErrorKind> {
    match FileIdentity::of(path) {
        Ok(found) if found == identity => Ok(()),
        Ok(_) => Err(RebuildErrorKind::Replaced),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(RebuildErrorKind::Replaced),
        Err(error) => Err(error).doing("looking at the database"),
    }
}

fn rename_exchange(one: &Path, other: &Path) -> Result<(), RebuildErrorKind> {
    use rustix::io::Errno;
    match rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(RebuildErrorKind::NoExchange),
        result => result.doing("exchanging the names"),
    }
}

impl Exchanged {
    /// Puts the exchange on the disk and gives the old database up: it loses its name, or takes the name `kept`. Returns once nobody
    /// can be left behind on it.
    fn retire(
        self,
        locked: ExclusiveDatabase,
        kept: Option<&Path>,
        observer: &dyn Observer,
    ) -> Result<u64, RebuildErrorKind> {
        let synced = sync_folder(&self.path);
        if synced.is_ok() {
            observer.reached(Step::FolderSynced.name());
        }
        let old = self.old.clone();
        let outcome = match (synced, kept) {
            // Without the disk's word the old database is the only one that is certain to be there after a loss of power.
            (Err(source), _) => Err(RebuildErrorKind::Unconfirmed { kept: old, source }),
            (Ok(()), None) => fs::remove_file(&old).doing("removing the old database"),
            (Ok(()), Some(name)) => fs::rename(&old, name).doing("keeping the old database"),
        };
        self.wait_until_alone(observer);
        let locked_ms = locked.held_ms();
        drop(locked);
        outcome?;
        observer.reached(Step::Retired.name());
        Ok(locked_ms)
    }

    /// An `open(2)` that began before the exchange holds the old file. It must fail on the lock and go away, for it would read the
    /// new file's log into the old one: so the lock stays until the lease is granted again, however long that takes.
    fn wait_until_alone(self, observer: &dyn Observer) {
        let mut lease = self.lease;
        let mut waits = 0;
        loop {
            wait_for_arrivals();
            if lease.is_whole() {
                return;
            }
            lease.release();
            lease = loop {
                waits += 1;
                observer.progress(Progress {
                    phase: "waiting for a process that opened the old file",
                    done: waits,
                    total: None,
                    unit: Unit::Rows,
                });
                wait_for_arrivals();
                if let Ok(lease) = WriteLease::take(self.identity) {
                    break lease;
                }
            };
        }
    }
}

/// Copies the content of the new file back into the locked database, as one transaction. The file keeps its identity, so whoever has
/// it open finds the new content behind the same descriptor.
fn copy_back(
    locked: &mut ExclusiveDatabase,
    new: &TemporaryFile,
    observer: &dyn Observer,
) -> Result<u64, RebuildErrorKind> {
    let source = connect::resting(new.path()).doing("opening the new file")?;
    let backup = Backup::new(&source, locked.connection_mut()).doing("copying back")?;
    let busy = || RebuildErrorKind::InUse { holders: Named(Vec::new()) };
    pages::copy_all(&backup, ("copying back", "copying back"), busy, observer)?;
    drop(backup);
    let log_growth = locked.log_growth();
    observer.reached(Step::CopiedBack.name());
    locked.merge_log().map_err(|source| RebuildErrorKind::Unmerged { source: Box::new(source) })?;
    observer.reached(Step::LogMerged.name());
    Ok(log_growth)
}
