//! What a database must have before the store works with it.

use std::error::Error;

use deadpool_postgres::Pool;
use refinery::{Runner, Target};
use tokio_postgres::error::SqlState;

use crate::failure::Failed;
use crate::run_tx::{Ended, attempts};
use crate::triggers::PutInPlace;

/// The key of the advisory lock under which one process at a time works on the schema: the text "headwater" as a number.
pub(crate) const LOCK: i64 = 0x6865_6164_7761_7465;

/// Why a database could not be opened as a conversation store. What was in it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address or another option is malformed.
    #[error("the options of the connection are malformed")]
    Options(#[source] Box<dyn Error + Send + Sync>),
    /// The database cannot be reached, or the connection was lost.
    #[error("PostgreSQL cannot be reached")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// A statement failed.
    #[error("the schema cannot be brought up to date")]
    Statement(#[source] Box<dyn Error + Send + Sync>),
    /// The schema is newer than this program, or a migration failed.
    #[error("the schema cannot be brought up to date; a newer version of the program may have written it")]
    Migration(#[source] Box<dyn Error + Send + Sync>),
    /// The source of randomness failed.
    #[error("no randomness")]
    Io(#[from] std::io::Error),
}

impl From<Failed> for OpenError {
    fn from(failed: Failed) -> Self {
        if failed.is_lost() || matches!(failed, Failed::Pool(_)) {
            Self::Connect(Box::new(failed))
        } else {
            Self::Statement(Box::new(failed))
        }
    }
}

/// What an error comes down to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The address is malformed.
    Address,
    /// The server does not answer, not in time, or not any more.
    Unreachable,
    /// The server refuses the user or the password, or the user may not do this.
    Denied,
    /// The server has no such database.
    NoDatabase,
    /// The schema is newer than this program.
    Newer,
    /// A statement failed, with the code of the error (SQLSTATE).
    Statement(String),
    /// Something else.
    Other,
}

impl OpenError {
    /// What it comes down to. Neither the address nor anything that a server says is in it.
    pub fn cause(&self) -> Cause {
        let mut next: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = next {
            if let Some(cause) = error.downcast_ref::<Failed>().and_then(Failed::cause) {
                return cause;
            }
            next = error.source();
        }
        match self {
            Self::Options(_) => Cause::Address,
            Self::Connect(_) => Cause::Unreachable,
            Self::Migration(_) => Cause::Newer,
            Self::Statement(_) | Self::Io(_) => Cause::Other,
        }
    }
}

impl Failed {
    /// What it comes down to; none where what is behind it says more.
    fn cause(&self) -> Option<Cause> {
        let denied = [
            SqlState::INVALID_PASSWORD,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            SqlState::INSUFFICIENT_PRIVILEGE,
        ];
        match self {
            Self::Pool(_) => None,
            _ if self.is_lost() => Some(Cause::Unreachable),
            Self::State(state) if denied.contains(state) => Some(Cause::Denied),
            Self::State(state) if *state == SqlState::INVALID_CATALOG_NAME => Some(Cause::NoDatabase),
            Self::State(state) if *state == SqlState::TOO_MANY_CONNECTIONS => Some(Cause::Unreachable),
            Self::State(state) => Some(Cause::Statement(state.code().to_owned())),
            // The server asks for a password and the address has none: the driver says so in words alone.
            Self::Answer(text) if text.contains("password") => Some(Cause::Denied),
            Self::Lost | Self::Answer(_) => Some(Cause::Other),
        }
    }
}

/// Brings the schema up to date, one process at a time.
pub(crate) async fn prepare(pool: &Pool) -> Result<(), OpenError> {
    let mut client = pool.get().await.map_err(Failed::from)?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.map_err(Failed::from)?;
    let prepared = migrations().run_async(&mut **client).await.map_err(of_migration);
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await;
    prepared?;
    unlocked.map_err(Failed::from)?;
    drop(client);
    put_triggers_in_place(pool).await
}

/// See [`PutInPlace`]; it is the same however often it is done.
pub(crate) async fn put_triggers_in_place(pool: &Pool) -> Result<(), OpenError> {
    attempts(pool, &PutInPlace).await.map_err(|ended| match ended {
        Ended::Failed(failed) | Ended::Unknown(failed) => failed.into(),
        Ended::Refused(kind) => OpenError::Statement(Box::new(kind)),
    })
}

/// What a migration failed with: PostgreSQL's answer, or that this program does not know what it found.
fn of_migration(error: refinery::Error) -> OpenError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<tokio_postgres::Error>() {
            return Failed::from(inner).into();
        }
        cause = inner.source();
    }
    OpenError::Migration(Box::new(error))
}

/// The newest schema that this program knows, and the name of the first.
pub(crate) const VERSION: i32 = 1;
pub(crate) const FIRST: &str = "conversation_tables";

fn migrations() -> Runner {
    mod embedded {
        refinery::embed_migrations!("migrations");
    }
    embedded::migrations::runner().set_grouped(true).set_abort_missing(true).set_target(Target::Latest)
}
