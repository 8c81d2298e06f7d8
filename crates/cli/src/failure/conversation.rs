//! Conversation stores that cannot be opened, read or written.

use std::io;

use headwater_store::{BadMutation, ReadError, ReadErrorKind, Standing, WriteError, WriteErrorKind};
use headwater_store_postgres::{Cause as ServerCause, OpenError as ServerError};
use headwater_store_sqlite::{Cause as FileCause, OpenError as UpgradeError};
use headwater_upkeep::OpenError;
use headwater_upkeep::rebuild::RebuildError;

use super::{Failure, WAIT_HINT};
use crate::render::size::size;
use crate::status::Status;

const RUN_CUTOVER: &str =
    "stop the agent host and run `headwater conversation cutover`, which keeps a copy; nothing was changed";
const NOTHING: &str = "nothing was changed";
const RIGHTS: &str = "run as the user who owns the store; nothing was changed";

/// A file that cannot be opened.
pub(crate) fn of_file(error: &OpenError) -> Failure {
    hinted(Failure::from(error))
}

/// A backup or a restore that did not happen.
pub(crate) fn of_copy(error: RebuildError) -> Failure {
    hinted(Failure::from(error))
}

/// What is said of OpenCode's databases does not help here.
fn hinted(failure: Failure) -> Failure {
    let hint = match failure.code {
        "not-found" => "check the path, or make a store with `headwater conversation init`",
        "directory" => "name the database file inside it",
        "empty-file" => "make a store of it with `headwater conversation init`",
        "not-a-database" => "check the path; nothing was changed",
        "damaged" => "restore a backup: `headwater conversation restore FILE`; nothing was changed",
        "needs-recovery" => {
            "run the `init` or `cutover --yes` again that was interrupted, or start the program that wrote it: both finish the rollback"
        }
        "encoding" => "a conversation store keeps UTF-8 only",
        "schema-too-large" => "check the path: this is no conversation store",
        "in-use" => "stop the agent host and whatever else has it open; nothing was changed",
        _ => return failure,
    };
    failure.with_hint(hint)
}

/// Refuses what is no conversation store, and what a later program wrote.
pub(crate) fn ensure_store(standing: Standing, shown: &str) -> Result<(), Failure> {
    let refuse = |code, words: &str, hint: &str| {
        Err(Failure::new(Status::Damaged, code, format_args!("{shown}: {words}")).with_hint(hint))
    };
    match standing {
        Standing::Host | Standing::Ours => Ok(()),
        Standing::Empty => refuse(
            "not-a-store",
            "no conversation store is in it",
            "make one with `headwater conversation init`; nothing was changed",
        ),
        Standing::Foreign { is_opencode: true } => refuse(
            "opencode-database",
            "this is a database of OpenCode, not a conversation store",
            "`headwater sessions --db` and the other verbs read it; nothing was changed",
        ),
        Standing::Foreign { is_opencode: false } => refuse(
            "not-a-store",
            "another program's database, not a conversation store",
            "check the path; nothing was changed",
        ),
        Standing::Newer => refuse(
            "newer-store",
            "a newer version of this program has written it",
            "use a newer version of this program; nothing was changed",
        ),
    }
}

/// A host's database that has not been taken over, or not wholly.
pub(crate) fn needs_cutover(shown: &str) -> Failure {
    let message = format_args!("{shown}: an agent host's database that is not ready as a conversation store");
    Failure::new(Status::Blocked, "needs-cutover", message).with_hint(RUN_CUTOVER)
}

/// A schema that could not be made or brought up to date.
pub(crate) fn of_upgrade(error: &UpgradeError) -> Failure {
    let (status, code, words, hint) = match error.kind.cause() {
        FileCause::Busy => (Status::Blocked, "busy", "another program holds the file", WAIT_HINT),
        FileCause::Denied => {
            (Status::Other, "permission-denied", "the file or its folder cannot be written", RIGHTS)
        }
        FileCause::Full => {
            (Status::Other, "no-room", "no room is left", "make room on that disk; nothing was changed")
        }
        FileCause::Damaged => (
            Status::Damaged,
            "damaged",
            "the database is damaged",
            "restore a backup: `headwater conversation restore FILE`",
        ),
        FileCause::Newer => (
            Status::Damaged,
            "newer-store",
            "its schema does not go with this program",
            "use a newer version of this program; nothing was changed",
        ),
        FileCause::Other => (Status::Other, "sqlite", "its schema cannot be brought up to date", NOTHING),
    };
    Failure::new(status, code, format_args!("{}: {words}", error.path.display())).with_hint(hint)
}

/// A database that cannot be reached or brought up to date. Nothing of what the server says is repeated: it may quote rows.
pub(crate) fn of_server(error: &ServerError, shown: &str) -> Failure {
    let (status, code, words, hint) = match error.cause() {
        ServerCause::Address => (
            Status::Usage,
            "address",
            "the address is malformed".to_owned(),
            "write postgres://USER@HOST:PORT/DATABASE; nothing was changed",
        ),
        ServerCause::Unreachable => (
            Status::Other,
            "unreachable",
            "the server does not answer".to_owned(),
            "check host and port, and that the server runs; nothing was changed",
        ),
        ServerCause::Denied => (
            Status::Other,
            "permission-denied",
            "the server refuses the user or the password, or the user may not do this".to_owned(),
            "check user and password in the address; nothing was changed",
        ),
        ServerCause::NoDatabase => (
            Status::Other,
            "not-found",
            "the server has no such database".to_owned(),
            "make it with `createdb`, or name another one; nothing was changed",
        ),
        ServerCause::Newer => (
            Status::Damaged,
            "newer-store",
            "its schema does not go with this program".to_owned(),
            "use a newer version of this program; nothing was changed",
        ),
        ServerCause::Statement(state) => {
            (Status::Other, "postgres", format!("a statement failed (SQLSTATE {state})"), NOTHING)
        }
        ServerCause::Other => (Status::Other, "postgres", "it cannot be opened".to_owned(), NOTHING),
    };
    Failure::new(status, code, format_args!("{shown}: {words}")).with_hint(hint)
}

/// A reading that stopped.
pub(crate) fn of_read(error: &ReadError, shown: &str) -> Failure {
    let (status, code, hint) = match &error.0 {
        ReadErrorKind::UnknownSession => return unknown_session(shown),
        ReadErrorKind::RevisionMoved { .. } => (Status::Blocked, "changed", "run the same command again"),
        ReadErrorKind::Unavailable(_) => (Status::Blocked, "busy", WAIT_HINT),
        ReadErrorKind::Storage(_) => {
            (Status::Damaged, "unreadable", "`headwater conversation check` says what is wrong with it")
        }
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", NOTHING),
    };
    Failure::new(status, code, format_args!("{shown}: {error}")).with_hint(hint)
}

/// No session has the id.
pub(crate) fn unknown_session(shown: &str) -> Failure {
    Failure::new(Status::Usage, "unknown-session", format_args!("{shown}: no such session"))
        .with_hint("`headwater conversation sessions` lists them; nothing was changed")
}

/// A batch that was not written.
pub(crate) fn of_write(error: &WriteError, shown: &str) -> Failure {
    let (status, code, hint) = match &error.0 {
        WriteErrorKind::UnknownSession => {
            return unknown_session(shown).with_hint(
                "`headwater conversation sessions` lists them; --create makes a new one; nothing was changed",
            );
        }
        WriteErrorKind::Refused { reason, .. } => {
            let (status, code, hint) = explain(*reason);
            let words = if let BadMutation::TooLarge { bytes, limit } = reason {
                format!("content of {} is larger than {}", size(*bytes), size(*limit))
            } else {
                reason.to_string()
            };
            return Failure::new(status, code, words).with_hint(hint);
        }
        WriteErrorKind::UnknownTask => (Status::Usage, "unknown-task", NOTHING),
        WriteErrorKind::DuplicateSession => (Status::Blocked, "duplicate-id", NOTHING),
        WriteErrorKind::Busy(_) => (Status::Blocked, "busy", WAIT_HINT),
        WriteErrorKind::Unknown(_) => (
            Status::Other,
            "unknown-outcome",
            "send the same message again with its --id: it is written once",
        ),
        WriteErrorKind::ReadOnly => (Status::Other, "permission-denied", RIGHTS),
        WriteErrorKind::Full => (Status::Other, "no-room", "make room on that disk; nothing was changed"),
        WriteErrorKind::Storage(_) => {
            (Status::Other, "storage", "`headwater conversation check` may say more; nothing was changed")
        }
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", NOTHING),
    };
    Failure::new(status, code, format_args!("{shown}: {error}")).with_hint(hint)
}

/// What a refused change ends with.
pub(crate) const fn explain(reason: BadMutation) -> (Status, &'static str, &'static str) {
    match reason {
        BadMutation::DuplicateId => {
            (Status::Blocked, "duplicate-id", "choose another id; nothing was changed")
        }
        BadMutation::TooLarge { .. } => {
            (Status::Usage, "too-large", "shorten it, or post it in parts; nothing was changed")
        }
        BadMutation::UnknownTurn => (
            Status::Usage,
            "unknown-turn",
            "`headwater conversation show SESSION --turns` lists them; nothing was changed",
        ),
        BadMutation::UnknownMessage => (
            Status::Usage,
            "unknown-message",
            "`headwater conversation show SESSION` lists them; nothing was changed",
        ),
        BadMutation::InvalidMetadata => (Status::Usage, "invalid-metadata", NOTHING),
        BadMutation::NulCharacter => (Status::Usage, "nul-character", NOTHING),
        BadMutation::NotStorable => (
            Status::Blocked,
            "not-storable",
            "a time that is none, or text that is not UTF-8, fits into a SQLite file only; nothing of it was written",
        ),
        BadMutation::RefusedByDatabase => {
            (Status::Blocked, "refused-by-database", "nothing of it was written")
        }
        BadMutation::AppendConflict { .. } => (Status::Blocked, "append-conflict", NOTHING),
        BadMutation::NotAfterPrompts
        | BadMutation::NotATool
        | BadMutation::NotARequest
        | BadMutation::AlreadyResolved => (Status::Blocked, "refused", NOTHING),
        // Required because the enum may grow in another release of the library.
        _ => (Status::Other, "other", NOTHING),
    }
}

/// The machinery that waits for a server could not be set up.
pub(crate) fn of_runtime(error: &io::Error) -> Failure {
    Failure::new(Status::Other, "io", format_args!("cannot start: {error}")).with_hint(NOTHING)
}
