//! A store of either kind, for verbs that do not care which.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use headwater_model::SessionId;
use headwater_model::conversation::{MessageRecord, SessionRecord, TurnRecord};
use headwater_store::transfer::{Imported, Owner, StoredRow, Table};
use headwater_store::{
    Batch, ConversationWriter, Finding, Inspection, Page, PageQuery, ReadError, SessionOverview, WriteError,
    Written,
};
use headwater_store_postgres::{PostgresOptions, PostgresStore, Snapshot as ServerSnapshot};
use headwater_store_sqlite::{Snapshot as FileSnapshot, SqliteOptions, SqliteStore, Upgrade, inspect};
use headwater_upkeep::open::ensure_writable_at;
use headwater_upkeep::{Content, ReadDatabase};
use tokio::runtime::{Builder, Runtime};

use super::place::{Place, Server};
use crate::failure::{Failure, conversation as failure};

/// Connections to a server: one that reads, and one that writes.
const CONNECTIONS: usize = 2;

/// What can be read at one instant.
pub(super) trait History {
    /// The row of a session.
    fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError>;
    /// Sessions behind `after`.
    fn overview(&self, after: &str, limit: u32) -> Result<Vec<SessionOverview>, ReadError>;
    /// A page of messages.
    fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError>;
    /// A page of turns.
    fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError>;
    /// Each row of a table.
    fn each_row(
        &self,
        table: Table,
        owner: Owner<'_>,
        each: &mut dyn FnMut(StoredRow) -> ControlFlow<()>,
    ) -> Result<(), ReadError>;
    /// What is wrong.
    fn check(&self) -> Result<Vec<Finding>, ReadError>;
}

impl History for FileSnapshot<'_> {
    fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError> {
        self.session(session)
    }
    fn overview(&self, after: &str, limit: u32) -> Result<Vec<SessionOverview>, ReadError> {
        self.overview(after, limit)
    }
    fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
        self.messages(query)
    }
    fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
        self.turns(query)
    }
    fn each_row(
        &self,
        table: Table,
        owner: Owner<'_>,
        each: &mut dyn FnMut(StoredRow) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.each_row(table, owner, each)
    }
    fn check(&self) -> Result<Vec<Finding>, ReadError> {
        self.check()
    }
}

struct OnServer<'a> {
    runtime: &'a Runtime,
    snapshot: ServerSnapshot<'a>,
}

impl History for OnServer<'_> {
    fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError> {
        self.runtime.block_on(self.snapshot.session(session))
    }
    fn overview(&self, after: &str, limit: u32) -> Result<Vec<SessionOverview>, ReadError> {
        self.runtime.block_on(self.snapshot.overview(after, limit))
    }
    fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
        self.runtime.block_on(self.snapshot.messages(query))
    }
    fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
        self.runtime.block_on(self.snapshot.turns(query))
    }
    fn each_row(
        &self,
        table: Table,
        owner: Owner<'_>,
        each: &mut dyn FnMut(StoredRow) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.runtime.block_on(self.snapshot.each_row(table, owner, each))
    }
    fn check(&self) -> Result<Vec<Finding>, ReadError> {
        self.runtime.block_on(self.snapshot.check())
    }
}

/// Whose database `place` is. Writes nothing.
pub(super) fn look(place: &Place) -> Result<Inspection, Failure> {
    match place {
        Place::File { path, .. } => look_at(path).map_err(|failure| explained(failure, place)),
        Place::Server(server) => {
            let runtime = runtime()?;
            let store = attach(server, place)?;
            runtime.block_on(store.inspect()).map_err(|error| failure::of_server(&error, &place.shown()))
        }
    }
}

/// As [`look`], for a verb that is about to write: what a killed run left in a file is rolled back first.
pub(super) fn look_to_write(place: &Place) -> Result<Inspection, Failure> {
    match (look(place), place) {
        (Err(failure), Place::File { path, .. }) if failure.code == "needs-recovery" => {
            ensure_writable_at(path).map_err(|error| failure::of_file(&error))?;
            SqliteStore::recover(path).map_err(|error| failure::of_upgrade(&error))?;
            look(place)
        }
        (found, _) => found,
    }
}

/// Whose database the file at `path` is. Writes nothing.
pub(super) fn look_at(path: &Path) -> Result<Inspection, Failure> {
    let database =
        ReadDatabase::open_holding(path, Content::Any).map_err(|error| failure::of_file(&error))?;
    let found = inspect(database.connection());
    database.finish().map_err(|error| failure::of_file(&error))?;
    found.map_err(|error| failure::of_read(&error, &path.to_string_lossy()))
}

/// Runs `read` on the store at `place` as it is at one instant. Writes nothing; refuses what cannot be read as it is.
pub(super) fn read<T>(
    place: &Place,
    read: impl FnOnce(&dyn History) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let shown = place.shown();
    match place {
        Place::File { path, .. } => {
            let database = ReadDatabase::open_holding(path, Content::Any)
                .map_err(|error| explained(failure::of_file(&error), place))?;
            let outcome = read_file(&database, &shown, read);
            // A torn reading looks like damage: whether somebody wrote meanwhile comes first.
            database.finish().map_err(|error| failure::of_file(&error))?;
            outcome
        }
        Place::Server(server) => {
            let runtime = runtime()?;
            let store = attach(server, place)?;
            let found =
                runtime.block_on(store.inspect()).map_err(|error| failure::of_server(&error, &shown))?;
            ensure_readable(&found, &shown)?;
            let mut reader =
                runtime.block_on(store.reader()).map_err(|error| failure::of_read(&error, &shown))?;
            let snapshot =
                runtime.block_on(reader.snapshot()).map_err(|error| failure::of_read(&error, &shown))?;
            read(&OnServer { runtime: &runtime, snapshot })
        }
    }
}

fn read_file<T>(
    database: &ReadDatabase,
    shown: &str,
    read: impl FnOnce(&dyn History) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let of_read = |error: ReadError| failure::of_read(&error, shown);
    let found = inspect(database.connection()).map_err(of_read)?;
    ensure_readable(&found, shown)?;
    read(&FileSnapshot::begin(database.connection()).map_err(of_read)?)
}

fn ensure_readable(found: &Inspection, shown: &str) -> Result<(), Failure> {
    failure::ensure_store(found.standing, shown)?;
    if found.is_readable() { Ok(()) } else { Err(failure::needs_cutover(shown)) }
}

/// A store that is open for writing.
pub(super) struct Writer {
    kind: Kind,
    runtime: Runtime,
}

enum Kind {
    File(SqliteStore),
    Server(PostgresStore),
}

impl Writer {
    /// Opens the store at `place`, whose schema must be as this program leaves it: only `init` and `cutover` change one.
    pub(super) fn open(place: &Place) -> Result<Self, Failure> {
        let found = look(place)?;
        failure::ensure_store(found.standing, &place.shown())?;
        if !found.is_current() {
            return Err(failure::needs_cutover(&place.shown()));
        }
        Self::open_any(place)
    }

    /// Opens whatever is at `place`, and brings its schema up to date.
    pub(super) fn open_any(place: &Place) -> Result<Self, Failure> {
        let runtime = runtime()?;
        let kind = match place {
            Place::File { path, .. } => {
                ensure_writable_at(path).map_err(|error| failure::of_file(&error))?;
                let opened = SqliteStore::open(path, SqliteOptions::default());
                Kind::File(opened.map_err(|error| failure::of_upgrade(&error))?)
            }
            Place::Server(server) => {
                let opened = runtime.block_on(PostgresStore::open(&server.address, options()));
                Kind::Server(opened.map_err(|error| failure::of_server(&error, &place.shown()))?)
            }
        };
        Ok(Self { kind, runtime })
    }

    /// Writes a batch.
    pub(super) fn apply(&self, batch: Batch) -> Result<Written, WriteError> {
        self.runtime.block_on(match &self.kind {
            Kind::File(store) => store.apply(batch),
            Kind::Server(store) => store.apply(batch),
        })
    }

    /// Takes rows in.
    pub(super) fn import(&self, rows: Vec<StoredRow>) -> Result<Imported, WriteError> {
        match &self.kind {
            Kind::File(store) => self.runtime.block_on(store.import(rows)),
            Kind::Server(store) => self.runtime.block_on(store.import(rows)),
        }
    }

    /// What opening the store changed, where it is a file: the triggers that were put in place, and the copy.
    pub(super) fn upgrade(&self) -> Option<(Vec<String>, Option<PathBuf>)> {
        let Kind::File(store) = &self.kind else { return None };
        let Upgrade { triggers, backup, .. } = store.upgrade().clone();
        Some((triggers, backup))
    }

    /// Ends the work; a file is as it will stay then.
    pub(super) fn close(self) {
        if let Kind::File(store) = self.kind {
            store.close();
        }
    }
}

fn attach(server: &Server, place: &Place) -> Result<PostgresStore, Failure> {
    PostgresStore::attach(&server.address, options())
        .map_err(|error| failure::of_server(&error, &place.shown()))
}

fn options() -> PostgresOptions {
    PostgresOptions { connections: CONNECTIONS, ..PostgresOptions::default() }
}

fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(|error| failure::of_runtime(&error))
}

/// A store that is missing can be made; one that nobody named is told so.
fn explained(failure: Failure, place: &Place) -> Failure {
    match (failure.code, place) {
        ("not-found", Place::File { is_default: true, .. }) => {
            failure.with_hint("make a store with `headwater conversation init`, or name one with --db")
        }
        _ => failure,
    }
}
