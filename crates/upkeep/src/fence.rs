//! Who may write a session, and when (P8).
//!
//! [`Fence::ask`] runs before the lock and may read `/proc` and talk to servers. [`Fence::check`] runs under the lock and only reads
//! rows: claims are read, never set or cleared. What a caller knows from before the lock counts only for [`ASKED_AGE_MAX`]; after that
//! the lock is given back and everything is asked again, because a turn that began meanwhile left a trace in the rows at its beginning.

use std::time::{Duration, Instant};

use headwater_model::UnixMillis;
use headwater_prune::KeptReason;
use headwater_prune::decide::{self, SessionState};
use rusqlite::Connection;

use crate::lock::Held;
use crate::schema::Schema;

mod clock;
mod newest;
mod patience;
mod place;
mod probe;
mod servers;
mod storage;

pub use clock::Clock;
pub(crate) use patience::Patience;
pub use place::SessionPlace;
pub use probe::{Activity, Holders, NoServers, ServerProbe};
pub use servers::OpenCodeServers;
pub use storage::{Storage, Unsupported};

/// How long an answer from before the lock counts under the lock, from the moment in which it was asked for. Shorter than the default
/// settling time, also with the moment for which answers are kept: rows that a turn wrote after any of the servers looked are younger than
/// that.
pub const ASKED_AGE_MAX: Duration = Duration::from_millis(1500);

/// How often the servers are asked in a row where they are slow to answer.
const ASKS_MAX: u32 = 3;

/// What a caller may relax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceOptions {
    /// A 1.x session is left alone until no row of it has changed for this long, in milliseconds: OpenCode writes a little after
    /// it is idle (fact A7).
    pub settle_ms: u32,
    /// Whether the other messages of a session may be touched whose newest turn was interrupted, when nobody holds the file.
    pub interrupted: bool,
}

impl Default for FenceOptions {
    fn default() -> Self {
        Self { settle_ms: 2000, interrupted: false }
    }
}

/// Why a session may not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The session or its rows are in a state that forbids it.
    #[error(transparent)]
    Kept(#[from] KeptReason),
    /// The database is not one that this program knows how to write.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The session stands in another directory, project or workspace than the caller believes.
    #[error("the session was moved")]
    Moved,
    /// The answer from before the lock is too old: give the lock back and ask again.
    #[error("it took too long to ask the servers and to get the write lock")]
    AskedTooLongAgo,
}

/// What is about to be removed, as far as the fence tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Content of messages.
    Content,
    /// Whole sessions. An interrupted turn goes with them, and so do retained event rows.
    Whole,
    /// Event rows alone. A session whose turn was interrupted loses them too, and retained event rows are no obstacle.
    Events,
}

/// What was learned before the lock.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    holders: Holders,
    at: Instant,
}

impl Asked {
    /// Whether enough of the time for which the answer counts is left to ask about other sessions before the lock is taken.
    pub(crate) fn leaves_time(&self) -> bool {
        self.at.elapsed() < ASKED_AGE_MAX / 3
    }
}

/// The checks for one database.
pub struct Fence<'a> {
    options: FenceOptions,
    probe: &'a dyn ServerProbe,
    clock: Clock,
    sealed: Sealed,
}

/// A schema that was examined; valid while the database's schema version is the same.
struct Sealed {
    version: i64,
    schema: Schema,
}

impl<'a> Fence<'a> {
    /// A fence for the database behind `connection`.
    ///
    /// # Errors
    /// Any error of SQLite while it reads the schema.
    pub fn new(
        connection: &Connection,
        options: FenceOptions,
        probe: &'a dyn ServerProbe,
        clock: Clock,
    ) -> rusqlite::Result<Self> {
        Ok(Self { options, probe, clock, sealed: Sealed::read(connection)? })
    }

    /// The schema that the checks know.
    pub fn schema(&self) -> &Schema {
        &self.sealed.schema
    }

    /// The clock that ages are measured with.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Asks who holds the file and whether a server is busy with the session. Call it without the lock.
    ///
    /// The answer is as old as the question: a server may have looked long before its answer comes, and what it does meanwhile is not in
    /// it. A first request to a directory takes OpenCode seconds on a busy machine, the next one does not; so the first is not the one
    /// that counts, and where an answer took long all the same, everything is asked again, three times at most.
    ///
    /// # Errors
    /// [`KeptReason::Executing`] where a server says so. No answer, or an answer that needs a password, says nothing.
    pub fn ask(&self, place: &SessionPlace) -> Result<Asked, KeptReason> {
        if self.probe.holders() != Holders::Nobody {
            self.probe.warm(directory_of(place));
        }
        let mut asked = self.ask_once(place)?;
        for _ in 1..ASKS_MAX {
            if asked.at.elapsed() <= ASKED_AGE_MAX / 2 {
                break;
            }
            asked = self.ask_once(place)?;
        }
        Ok(asked)
    }

    fn ask_once(&self, place: &SessionPlace) -> Result<Asked, KeptReason> {
        let at = Instant::now();
        let holders = self.probe.holders();
        if holders != Holders::Nobody
            && self.probe.activity(place.session.as_str(), directory_of(place)) == Activity::Busy
        {
            return Err(KeptReason::Executing);
        }
        Ok(Asked { holders, at })
    }

    /// Checks under the lock that `place` may be written.
    ///
    /// # Errors
    /// The outer error is SQLite's, the inner one says why the session stays.
    pub fn check(
        &mut self,
        held: &Held<'_>,
        place: &SessionPlace,
        asked: Asked,
        subject: Subject,
    ) -> rusqlite::Result<Result<(), Refusal>> {
        let connection = held.connection();
        if asked.at.elapsed() > ASKED_AGE_MAX {
            return Ok(Err(Refusal::AskedTooLongAgo));
        }
        if let Err(unsupported) = self.check_database(connection, place.storage)? {
            return Ok(Err(unsupported.into()));
        }
        let schema = &self.sealed.schema;
        let Some(stored) = SessionPlace::find(connection, schema, place.storage, &place.session)? else {
            return Ok(Err(KeptReason::Gone.into()));
        };
        if stored != *place {
            return Ok(Err(Refusal::Moved));
        }
        if let Some(reason) = self.state(connection, place)?.kept() {
            return Ok(Err(reason.into()));
        }
        if subject == Subject::Content
            && let Some(reason) = decide::events_retained(
                place.storage == Storage::V2,
                place::retained_events(connection, schema, &place.session)?,
            )
        {
            return Ok(Err(reason.into()));
        }
        if storage::has_claim(schema, place.storage) {
            return Ok(Ok(()));
        }
        Ok(self.check_unclaimed(connection, place, asked.holders, subject)?.map_err(Refusal::from))
    }

    /// Checks under the lock that rows of a session that has none may be put back: the database is understood, and no other row of
    /// the same session claims anything.
    ///
    /// # Errors
    /// As [`Fence::check`].
    pub fn check_absent(
        &mut self,
        held: &Held<'_>,
        place: &SessionPlace,
    ) -> rusqlite::Result<Result<(), Refusal>> {
        let connection = held.connection();
        if let Err(unsupported) = self.check_database(connection, place.storage)? {
            return Ok(Err(unsupported.into()));
        }
        Ok(self.state(connection, place)?.kept().map_or(Ok(()), |reason| Err(reason.into())))
    }

    fn check_database(
        &mut self,
        connection: &Connection,
        storage: Storage,
    ) -> rusqlite::Result<Result<(), Unsupported>> {
        if schema_version(connection)? != self.sealed.version {
            self.sealed = Sealed::read(connection)?;
        }
        if storage::attached_count(connection)? != 1 {
            return Ok(Err(Unsupported::Attached));
        }
        Ok(storage::ensure_supported(&self.sealed.schema, storage))
    }

    /// The union over both layouts: a session that 2.x runs is not written through its 1.x rows either.
    fn state(&self, connection: &Connection, place: &SessionPlace) -> rusqlite::Result<SessionState> {
        place::state(connection, &self.sealed.schema, &place.session)
    }

    /// 1.x has no claim: what is left are the rows, and who holds the file (fact A9).
    fn check_unclaimed(
        &self,
        connection: &Connection,
        place: &SessionPlace,
        holders: Holders,
        subject: Subject,
    ) -> rusqlite::Result<Result<(), KeptReason>> {
        let schema = &self.sealed.schema;
        if newest::is_unfinished(connection, schema, place)? {
            if holders != Holders::Nobody {
                return Ok(Err(KeptReason::Executing));
            }
            if subject == Subject::Content && !self.options.interrupted {
                return Ok(Err(KeptReason::Interrupted));
            }
        }
        let changed = newest::last_change(connection, schema, place)?;
        Ok(if self.is_settled(changed, holders) { Ok(()) } else { Err(KeptReason::NotSettled) })
    }

    /// A change in the future was made under another clock: it may have been made a moment ago, if anybody is there to make changes.
    fn is_settled(&self, changed: Option<UnixMillis>, holders: Holders) -> bool {
        let Some(changed) = changed else { return true };
        let settle_ms = i64::from(self.options.settle_ms);
        let age_ms = self.clock.now().since(changed);
        age_ms >= settle_ms || (age_ms <= -settle_ms && holders == Holders::Nobody)
    }
}

fn directory_of(place: &SessionPlace) -> &str {
    place.directory.as_deref().unwrap_or("")
}

impl Sealed {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        Ok(Self { version: schema_version(connection)?, schema: Schema::read(connection)? })
    }
}

fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests;
