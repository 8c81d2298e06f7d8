//! The one place that opens an OpenCode database, for reading or for writing, with every pragma set.
//!
//! A server that was stopped or killed leaves `-wal` and `-shm` behind (fact A1), so what lies beside a database says little about who
//! uses it, and SQLite's plain read-only open creates, rewrites or leaves such files. [`Access`] says which way of reading leaves no
//! trace in which surroundings.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::schema::Schema;

mod access;
mod damaged;
mod error;
mod file;
mod filesystem;
mod fingerprint;
mod registry;
#[cfg(test)]
mod tests;

use access::Surroundings;
use registry::{Registration, Use};

pub use access::Access;
pub(crate) use damaged::DamagedDatabase;
pub use error::{NAMES_MAX, OBJECT_BYTES_MAX, OBJECTS_MAX, OpenError, OpenErrorKind, PATH_BYTES_MAX};
pub use file::{DatabaseFile, is_of_database};
pub(crate) use fingerprint::{FileId, FileState};

/// Page cache of one connection in KiB. Two connections, a sorter and buffers stay under the 64 MiB that any command may use.
const CACHE_KIB: i64 = 8 * 1024;

/// How long anything here waits for another program's lock: as long as OpenCode itself (fact A1).
pub const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What a database must hold to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// OpenCode's tables.
    #[default]
    OpenCode,
    /// Whatever it is: the caller looks.
    Any,
}

/// A database open for reading only. Reading writes nothing: no checkpoint, no side file, no journal.
///
/// End every reading with [`ReadDatabase::finish`], or use [`ReadDatabase::with`], which does.
#[derive(Debug)]
pub struct ReadDatabase {
    connection: Connection,
    file: DatabaseFile,
    schema: Schema,
    access: Access,
    surroundings: Surroundings,
    // After the connection: it must outlive it.
    registration: Registration,
}

impl ReadDatabase {
    /// Opens `path` for reading. Waits up to 5 s for a lock.
    ///
    /// # Errors
    /// [`OpenError`] where the file is missing, not a database, not OpenCode's, damaged, locked or not readable.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_within(path, LOCK_WAIT)
    }

    /// As [`ReadDatabase::open`], for a database that holds `content`.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`].
    pub fn open_holding(path: &Path, content: Content) -> Result<Self, OpenError> {
        let opened = DatabaseFile::find(path)?;
        Self::connect(opened, LOCK_WAIT, content).map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    /// As [`ReadDatabase::open`], waiting up to `busy_timeout` for a lock.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`].
    pub fn open_within(path: &Path, busy_timeout: Duration) -> Result<Self, OpenError> {
        Self::from_file(DatabaseFile::find(path)?, busy_timeout)
    }

    /// Opens a file that was found before.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`], and where another file has taken its place since.
    pub fn from_file(file: DatabaseFile, busy_timeout: Duration) -> Result<Self, OpenError> {
        let path = file.path().to_owned();
        Self::connect(file, busy_timeout, Content::OpenCode).map_err(|kind| OpenError { path, kind })
    }

    /// Opens `path`, runs `read`, and makes sure that what was read belongs together. That nobody wrote is checked also where `read`
    /// failed: a torn reading looks like damage.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`] and [`ReadDatabase::finish`], and what `read` returns.
    pub fn with<T, E: From<OpenError>>(
        path: &Path,
        read: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let database = Self::open(path)?;
        let outcome = read(&database);
        database.finish()?;
        outcome
    }

    fn connect(file: DatabaseFile, busy_timeout: Duration, content: Content) -> Result<Self, OpenErrorKind> {
        let surroundings = Surroundings::of(&file)?;
        surroundings.ensure_same(&file)?;
        if file.has_hot_journal()? {
            return Err(OpenErrorKind::NeedsRecovery);
        }
        let access = surroundings.access(&file);
        if access.is_unlocked() && crate::locks::is_held_exclusively(file.id()) {
            return Err(OpenErrorKind::Busy);
        }
        let registration = Registration::new(file.id(), file.is_wal(), Use::Reading)?;
        let connection = open_reading(&file, access, busy_timeout)
            .and_then(|connection| load_schema(&connection).map(|()| connection))
            .map_err(|kind| explain(kind, &file))?;
        settle(&connection)?;
        let schema = Schema::read(&connection)?;
        Surroundings::of(&file)?.ensure_same(&file)?;
        match content {
            Content::OpenCode => ensure_layout(&connection, &schema)?,
            Content::Any => ensure_encoding(&connection)?,
        }
        Ok(Self { connection, file, schema, access, surroundings, registration })
    }

    /// The connection, for statements that only read.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The file behind it.
    pub fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// What the file holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How it is read.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The file itself, for reading its pages beside SQLite.
    ///
    /// # Errors
    /// Any error of opening it, and `NotFound` where another file has taken its place.
    pub(crate) fn raw_file(&self) -> std::io::Result<&std::fs::File> {
        self.registration.raw_file(self.file.path())
    }

    /// Another connection to the same file, for a second thread. It has its own view of a database in use.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`], and [`OpenErrorKind::ChangedWhileReading`] where a writer came in since.
    pub fn another(&self) -> Result<Self, OpenError> {
        self.connect_again().map_err(|kind| OpenError { path: self.file.path().to_owned(), kind })
    }

    fn connect_again(&self) -> Result<Self, OpenErrorKind> {
        Surroundings::of(&self.file)?.ensure_same(&self.file)?;
        self.check_unwritten()?;
        let connection =
            open_reading(&self.file, self.access, LOCK_WAIT).map_err(|kind| explain(kind, &self.file))?;
        load_schema(&connection)?;
        settle(&connection)?;
        Ok(Self {
            connection,
            file: self.file.clone(),
            schema: self.schema.clone(),
            access: self.access,
            surroundings: self.surroundings,
            registration: self.registration.clone(),
        })
    }

    /// Whether everything read so far belongs to one state of the database. Always true where SQLite's locks kept writers from
    /// touching what was read; looked up where no lock could be taken without leaving a file behind.
    ///
    /// # Errors
    /// [`OpenErrorKind::ChangedWhileReading`].
    pub fn ensure_unchanged(&self) -> Result<(), OpenError> {
        self.check_unwritten().map_err(|kind| OpenError { path: self.file.path().to_owned(), kind })
    }

    fn check_unwritten(&self) -> Result<(), OpenErrorKind> {
        if self.access.is_unlocked() {
            self.surroundings.ensure_unwritten(&Surroundings::of(&self.file)?)?;
        }
        Ok(())
    }

    /// Ends the reading: as [`ReadDatabase::ensure_unchanged`], then closes. Every verb that reads calls it before it reports.
    ///
    /// # Errors
    /// As [`ReadDatabase::ensure_unchanged`].
    pub fn finish(self) -> Result<(), OpenError> {
        self.ensure_unchanged()
    }
}

/// A database open for writing. The caller takes locks with `BEGIN IMMEDIATE` and runs checkpoints itself.
#[derive(Debug)]
pub struct WriteDatabase {
    connection: Connection,
    file: DatabaseFile,
    schema: Schema,
    /// Whether a log or its index lay beside the file when it was opened.
    had_side_files: bool,
    // After the connection: it must outlive it.
    _registration: Registration,
}

impl Drop for WriteDatabase {
    /// Leaves the folder as it was found: where nothing lay beside the database, SQLite removes the log and its index with the last
    /// connection. While another process has the file open it leaves both alone.
    fn drop(&mut self) {
        if self.had_side_files {
            return;
        }
        // What can be moved is moved before: SQLite does the rest under an exclusive lock, and OpenCode does not wait for that one. Where
        // any of this fails the files stay, which is harmless.
        let moved = self
            .connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        if moved.is_ok() {
            let _kept = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}

/// How often a database that changes under the first look is looked at again.
const LOOKS_MAX: u32 = 8;

impl WriteDatabase {
    /// Opens `path` for writing. Waits at most `busy_timeout` for each lock.
    ///
    /// Everything that can be refused is refused by reading, before the writing connection exists: that one creates `-wal` and `-shm`.
    /// Foreign keys are off: every delete names its rows, and a cascade would remove rows that no plan showed. Closing
    /// leaves the folder as it was found: a log that was there stays, one that was not is moved and removed, unless somebody else has the
    /// file open.
    ///
    /// # Errors
    /// As [`ReadDatabase::open`]; where the file or its folder cannot be written, or lies on a network file system; and
    /// [`OpenErrorKind::HeldForReading`] while this process has it open through [`ReadDatabase`].
    pub fn open(path: &Path, busy_timeout: Duration) -> Result<Self, OpenError> {
        let file = DatabaseFile::find(path)?;
        ensure_writable(&file).map_err(|kind| OpenError { path: path.to_owned(), kind })?;
        let registration = Registration::new(file.id(), file.is_wal(), Use::Writing)
            .map_err(|kind| OpenError { path: path.to_owned(), kind })?;
        ensure_readable(&file, busy_timeout)?;
        Self::connect(file, busy_timeout, registration)
            .map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    fn connect(
        file: DatabaseFile,
        busy_timeout: Duration,
        registration: Registration,
    ) -> Result<Self, OpenErrorKind> {
        let before = Surroundings::of(&file)?;
        before.ensure_same(&file)?;
        let connection = open_uri(file.path(), "mode=rw", OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.busy_timeout(busy_timeout)?;
        load_schema(&connection)?;
        settle(&connection)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let schema = Schema::read(&connection)?;
        if connection.is_readonly("main")? {
            // The system allows it: so the header names a version of the format that this SQLite may only read.
            return Err(OpenErrorKind::NewerFormat);
        }
        ensure_layout(&connection, &schema)?;
        Surroundings::of(&file)?.ensure_same(&file)?;
        let had_side_files = before.has_side_files();
        Ok(Self { connection, file, schema, had_side_files, _registration: registration })
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The connection, for operations that need it alone (transactions, backup).
    pub fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The file behind it.
    pub fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// What the file holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}

/// Reads the schema as a reader would. A program that begins to write meanwhile is no reason to refuse: the next look goes through its log.
fn ensure_readable(file: &DatabaseFile, busy_timeout: Duration) -> Result<(), OpenError> {
    for _ in 1..LOOKS_MAX {
        match ReadDatabase::from_file(file.clone(), busy_timeout).and_then(ReadDatabase::finish) {
            Err(OpenError { kind: OpenErrorKind::ChangedWhileReading, .. }) => {}
            outcome => return outcome,
        }
    }
    ReadDatabase::from_file(file.clone(), busy_timeout)?.finish()
}

/// Keeps a file registered as written by this process; declare it after the connection, so that it outlives it.
#[derive(Debug)]
pub(crate) struct Writing(#[expect(dead_code, reason = "held for its drop")] Registration);

impl Writing {
    /// Registers `file` before a connection to it is opened outside this module.
    ///
    /// # Errors
    /// [`OpenErrorKind::HeldForReading`] while this process has it open through [`ReadDatabase`].
    pub(crate) fn register(file: &DatabaseFile) -> Result<Self, OpenErrorKind> {
        Registration::new(file.id(), file.is_wal(), Use::Writing).map(Self)
    }
}

/// A reading connection without any look at what the file holds.
fn open_reading(
    file: &DatabaseFile,
    access: Access,
    busy_timeout: Duration,
) -> Result<Connection, OpenErrorKind> {
    let connection = open_uri(file.path(), access.parameters(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(busy_timeout)?;
    if access == Access::PrivateLog {
        // Before the first read: it makes SQLite keep the log's index in memory. The VFS has no locks that it could take.
        let _mode: String = connection.query_row("PRAGMA locking_mode=EXCLUSIVE", [], |row| row.get(0))?;
    }
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

#[expect(clippy::disallowed_methods, reason = "this is the one function that opens a database")]
fn open_uri(path: &Path, parameters: &str, access: OpenFlags) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?{parameters}", percent_encoded(path));
    let connection = Connection::open_with_flags(
        uri,
        access
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE,
    )?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    Ok(connection)
}

/// Steps of SQLite's machine between two looks at the budget, and looks until it is used up. Reading the schema takes 7 steps an object.
const SCHEMA_STEPS: i32 = 100;
const SCHEMA_LOOKS_MAX: u32 = 200;

/// Makes SQLite read the schema, which it keeps in memory whole, within a bound on the number and size of its objects.
pub(crate) fn load_schema(connection: &Connection) -> Result<(), OpenErrorKind> {
    let objects = within_schema_budget(connection, || {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    })?;
    let is_within = usize::try_from(objects).is_ok_and(|objects| objects <= OBJECTS_MAX);
    if is_within { Ok(()) } else { Err(OpenErrorKind::SchemaTooLarge) }
}

/// Runs the first statement on a connection, which loads the schema, and stops it where that would take too much.
fn within_schema_budget<T>(
    connection: &Connection,
    first: impl FnOnce() -> rusqlite::Result<T>,
) -> Result<T, OpenErrorKind> {
    let length = connection.limit(Limit::SQLITE_LIMIT_LENGTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(OBJECT_BYTES_MAX).unwrap_or(i32::MAX))?;
    let looks = AtomicU32::new(0);
    connection.progress_handler(
        SCHEMA_STEPS,
        Some(move || looks.fetch_add(1, Ordering::Relaxed) >= SCHEMA_LOOKS_MAX),
    )?;
    let outcome = first();
    connection.progress_handler(0, None::<fn() -> bool>)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
    outcome.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => OpenErrorKind::SchemaTooLarge,
        _ => error.into(),
    })
}

/// The pragmas that need the schema.
pub(crate) fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "FILE")
}

/// Tables by which a conversation store is known.
const CONVERSATION_TABLES: [&str; 3] = ["task_sessions", "task_session_turns", "task_session_messages"];

/// Refuses what is not OpenCode's, or not in its encoding.
pub(crate) fn ensure_layout(connection: &Connection, schema: &Schema) -> Result<(), OpenErrorKind> {
    let layouts = schema.layouts();
    if !layouts.v1 && !layouts.v2 {
        if CONVERSATION_TABLES.iter().all(|table| schema.has_table(table)) {
            return Err(OpenErrorKind::ConversationStore);
        }
        let found = schema.tables().keys().take(NAMES_MAX).cloned().collect();
        return Err(OpenErrorKind::WrongSchema { found, tables: schema.tables().len() });
    }
    let mut missing = schema.missing_columns();
    if !missing.is_empty() {
        missing.truncate(NAMES_MAX);
        return Err(OpenErrorKind::UnknownLayout { missing });
    }
    ensure_encoding(connection)
}

fn ensure_encoding(connection: &Connection) -> Result<(), OpenErrorKind> {
    let encoding: String = connection.pragma_query_value(None, "encoding", |row| row.get(0))?;
    if encoding == "UTF-8" { Ok(()) } else { Err(OpenErrorKind::Encoding { encoding }) }
}

/// Refuses a database that this user cannot write, or not safely: by its permissions, its folder and its file system. An empty file is
/// one that is about to become a database.
///
/// # Errors
/// [`OpenError`].
pub fn ensure_writable_at(path: &Path) -> Result<(), OpenError> {
    match DatabaseFile::find(path) {
        Ok(file) => ensure_writable(&file).map_err(|kind| OpenError { path: path.to_owned(), kind }),
        // One that has just been made.
        Err(OpenError { kind: OpenErrorKind::Empty, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn ensure_writable(file: &DatabaseFile) -> Result<(), OpenErrorKind> {
    use rustix::fs::{Access as Permission, access};
    if file.is_newer() {
        return Err(OpenErrorKind::NewerFormat);
    }
    if let Some(name) = file.network_file_system() {
        return Err(OpenErrorKind::NetworkFileSystem { name });
    }
    if access(file.path(), Permission::WRITE_OK).is_err() {
        return Err(OpenErrorKind::PermissionDenied);
    }
    if access(file.folder(), Permission::WRITE_OK | Permission::EXEC_OK).is_err() {
        return Err(OpenErrorKind::ReadOnlyFolder);
    }
    Ok(())
}

/// SQLite's "unable to open" says nothing about which file; the permissions do.
fn explain(kind: OpenErrorKind, file: &DatabaseFile) -> OpenErrorKind {
    use rustix::fs::{Access as Permission, access};
    let OpenErrorKind::Sqlite(error) = &kind else { return kind };
    if error.sqlite_error_code() != Some(ErrorCode::CannotOpen) {
        return kind;
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = file.beside(suffix);
        if access(&beside, Permission::EXISTS).is_ok() && access(&beside, Permission::READ_OK).is_err() {
            return OpenErrorKind::SideFileDenied { suffix };
        }
    }
    match FileState::of(file.path()) {
        // A file that can always be opened says whether any can.
        Ok(Some(state)) if state.id == file.id() => match std::fs::File::open("/dev/null") {
            Err(error) => OpenErrorKind::from(error),
            Ok(_) => kind,
        },
        _ => OpenErrorKind::Replaced,
    }
}

/// The path as the path of a URI: every byte outside the unreserved set and `/` is escaped, so `?`, `#`, `%`, spaces, newlines and
/// bytes that are not UTF-8 reach SQLite as they are.
pub(crate) fn percent_encoded(path: &Path) -> String {
    let mut encoded = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            escaped => {
                let digits = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
                encoded.extend(['%', digits(escaped >> 4), digits(escaped & 15)]);
            }
        }
    }
    encoded
}
