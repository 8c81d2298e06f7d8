//! A prune of one database: what it is done with.

use std::time::Duration;

use headwater_model::UnixMillis;
use headwater_prune::PruneRequest;

use super::answer::{Answer, PruneError};
use super::prepare::Wanted;
use crate::WriteDatabase;
use crate::fence::{Clock, Fence, FenceOptions, Patience, ServerProbe, SessionPlace};
use crate::lock::{LockPolicy, LockReport, ShortLocks};
use crate::observer::Observer;
use crate::state::{DatabaseIdentity, DatabaseKey, StateFile};
use crate::undo::Archive;

/// What a caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct PruneOptions {
    /// What the fence lets pass.
    pub fence: FenceOptions,
    /// How long locks are held and waited for.
    pub locks: LockPolicy,
}

impl PruneOptions {
    /// For commands and batches.
    pub fn batch() -> Self {
        Self { fence: FenceOptions::default(), locks: LockPolicy::BATCH }
    }

    /// For requests from a running program: a busy database is answered at once (P8).
    pub fn immediate() -> Self {
        Self { fence: FenceOptions::default(), locks: LockPolicy::IMMEDIATE }
    }
}

/// Removes content from one database. Holds no lock between two calls.
pub struct Pruner<'a> {
    pub(super) database: &'a WriteDatabase,
    pub(super) state: &'a mut StateFile,
    pub(super) key: DatabaseKey,
    pub(super) fence: Fence<'a>,
    pub(super) locks: ShortLocks<'a>,
    pub(super) claim_wait: Duration,
    pub(super) archive: Option<&'a mut Archive>,
    pub(super) observer: &'a dyn Observer,
    pub(super) patience: Patience,
}

impl<'a> Pruner<'a> {
    /// A pruner for `database` that keeps receipts in `state` where the database has no place for them.
    ///
    /// # Errors
    /// [`PruneError`] where the schema cannot be read or the state file not be written.
    pub fn new(
        database: &'a WriteDatabase,
        state: &'a mut StateFile,
        probe: &'a dyn ServerProbe,
        options: PruneOptions,
        now: UnixMillis,
        observer: &'a dyn Observer,
    ) -> Result<Self, PruneError> {
        let connection = database.connection();
        let identity = DatabaseIdentity::read(connection, database.file())?;
        let key = state.database(&identity)?;
        Ok(Self {
            database,
            state,
            key,
            fence: Fence::new(connection, options.fence, probe, Clock::starting_at(now))?,
            locks: ShortLocks::new(database, options.locks)?,
            claim_wait: options.locks.wait,
            archive: None,
            observer,
            patience: Patience::default(),
        })
    }

    /// The same pruner, which puts everything into `archive` before it removes it.
    #[must_use]
    pub fn with_archive(self, archive: &'a mut Archive) -> Self {
        Self { archive: Some(archive), ..self }
    }

    /// Removes the items that `request` names, or nothing (P5). The same request again answers with the same receipt and removes
    /// nothing more, until the content has its previewed revision again (P6).
    ///
    /// `place` is where the caller believes the session to stand; without one, where it stands when this is called.
    ///
    /// # Errors
    /// [`PruneError`] where the state file, the archive or SQLite fails. Repeat the identical request to learn what became of it.
    pub fn message(
        &mut self,
        request: &PruneRequest,
        place: Option<&SessionPlace>,
    ) -> Result<Answer, PruneError> {
        let wanted = [Wanted::Request { request, place }];
        match self.batch(&wanted) {
            Ok(mut answers) => Ok(answers.remove(0).answer),
            Err(error) => match error.kind.blocked() {
                Some(why) => Ok(Answer::Blocked(why.into())),
                None => Err(error),
            },
        }
    }

    /// What the locks have cost other processes so far.
    pub fn lock_report(&self) -> LockReport {
        self.locks.report()
    }
}
