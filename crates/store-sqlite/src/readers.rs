//! Connections that read, and where their work runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use headwater_store::{ReadError, ReadErrorKind};
use rusqlite::{Connection, Transaction};
use tokio::sync::Semaphore;

use crate::connection;
use crate::failure::read_error;
use crate::options::SqliteOptions;

/// A bounded number of connections, opened when they are needed first.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    path: Arc<PathBuf>,
    options: SqliteOptions,
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// Connections to the file at `path`.
    pub(crate) fn new(path: PathBuf, options: SqliteOptions) -> Self {
        let turns = Arc::new(Semaphore::new(options.readers.get().into()));
        Self { path: Arc::new(path), options, turns, idle: Arc::default() }
    }

    /// Runs `work` in a read transaction, on a thread where it may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let unavailable = |error| ReadError::from(ReadErrorKind::Unavailable(error));
        let turn =
            Arc::clone(&self.turns).acquire_owned().await.map_err(|error| unavailable(error.into()))?;
        let readers = self.clone();
        let run = move || {
            let _turn = turn;
            let mut db = readers.take().map_err(read_error)?;
            // Deferred: the first statement takes the snapshot, and every later one sees the same (C7).
            let transaction = db.transaction().map_err(read_error)?;
            let answer = work(&transaction)?;
            transaction.finish().map_err(read_error)?;
            readers.give_back(db);
            Ok(answer)
        };
        tokio::task::spawn_blocking(run).await.map_err(|error| unavailable(error.into()))?
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| connection::open_reader(&self.path, &self.options), Ok)
    }

    /// A connection whose work failed is not given back.
    fn give_back(&self, db: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
    }
}
