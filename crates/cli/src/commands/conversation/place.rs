//! Where a conversation store is.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use headwater_store_postgres::PostgresStore;

use crate::app::App;
use crate::failure::Failure;
use crate::render::text::printable;
use crate::status::Status;

/// The variable that names the store where `--db` does not.
const VARIABLE: &str = "HEADWATER_CONVERSATION_DB";

/// A store that is named; it may be missing.
pub(super) enum Place {
    /// A file of SQLite.
    File {
        path: PathBuf,
        /// Whether nobody named it.
        is_default: bool,
    },
    /// A database of PostgreSQL.
    Server(Server),
}

/// An address of PostgreSQL. Not shown as it is: it may hold a password.
pub(super) struct Server {
    pub(super) address: String,
    shown: String,
}

impl Place {
    /// The store that the arguments and the environment mean.
    pub(super) fn of(app: &App) -> Result<Self, Failure> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        if let Some(named) = app.db.clone().map(OsString::from).or_else(|| set(VARIABLE)) {
            return Self::named(named);
        }
        let below_home = || Some(PathBuf::from(set("HOME")?).join(".local/share"));
        let Some(data) = set("XDG_DATA_HOME").map(PathBuf::from).or_else(below_home) else {
            let message = "neither HOME nor XDG_DATA_HOME is set";
            return Err(Failure::new(Status::Other, "no-home", message).with_hint("name the store with --db"));
        };
        Ok(Self::File { path: data.join("headwater/conversations.db"), is_default: true })
    }

    fn named(named: OsString) -> Result<Self, Failure> {
        let is_address = |text: &str| text.starts_with("postgres://") || text.starts_with("postgresql://");
        match named.to_str().filter(|text| is_address(text)) {
            Some(address) => {
                let shown = PostgresStore::shown(address).map_err(|_| {
                    let message = "the address of the PostgreSQL database is malformed";
                    Failure::new(Status::Usage, "address", message)
                        .with_hint("write postgres://USER@HOST:PORT/DATABASE; nothing was changed")
                })?;
                Ok(Self::Server(Server { address: address.to_owned(), shown }))
            }
            None => Ok(Self::File { path: named.into(), is_default: false }),
        }
    }

    /// As people see it, safe for a terminal.
    pub(super) fn shown(&self) -> String {
        let text = match self {
            Self::File { path, .. } => path.to_string_lossy(),
            Self::Server(server) => server.shown.as_str().into(),
        };
        printable(&text).into_owned()
    }

    /// The file, where it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        if let Self::File { path, .. } = self { Some(path) } else { None }
    }
}
