//! The store as others see it.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use headwater_model::conversation::{MessageRecord, SessionRecord, TurnRecord};
use headwater_model::{Epoch, Revision, SessionId};
use headwater_store::transfer::{Imported, StoredRow};
use headwater_store::{
    Batch, ConversationSource, ConversationWriter, Life, NewSession, Page, PageLimit, PageQuery, ReadError,
    ReadErrorKind, WriteError, WriteErrorKind, Written,
};

use crate::epoch::{self, Identity};
use crate::options::SqliteOptions;
use crate::readers::Readers;
use crate::schema::{OpenError, OpenErrorKind, Upgrade};
use crate::work::{Done, Work};
use crate::writer::Writer;
use crate::{connection, failure, pages, rows, schema};

/// A conversation store in a SQLite file. Needs a tokio runtime: pages are read on its blocking threads.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    life: Life<Identity>,
    readers: Readers,
    writer: Writer,
    upgrade: Upgrade,
}

impl SqliteStore {
    /// Opens the file at `path`, creates it where there is none, and brings its schema up to date. Blocks.
    ///
    /// # Errors
    /// [`OpenError`], where the file cannot be opened or its schema is newer than this program; nothing of it has changed.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, OpenError> {
        Self::try_open(path, options).map_err(|kind| OpenError { path: path.to_owned(), kind })
    }

    /// Has the interrupted write of a killed program rolled back, which a reader does not do. Blocks.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn recover(path: &Path) -> Result<(), OpenError> {
        connection::recover(path).map_err(|error| OpenError { path: path.to_owned(), kind: error.into() })
    }

    fn try_open(path: &Path, options: SqliteOptions) -> Result<Self, OpenErrorKind> {
        let mut db = connection::open_writer(path, &options)?;
        let upgrade = schema::prepare(&mut db, path, &mut |_| Ok(()))?;
        Ok(Self {
            path: path.to_owned(),
            life: Life::begin(None, epoch::random()?),
            readers: Readers::new(path.to_owned(), options),
            writer: Writer::start(db, options.content_limit)?,
            upgrade,
        })
    }

    /// What opening the file changed in its schema.
    pub const fn upgrade(&self) -> &Upgrade {
        &self.upgrade
    }

    /// Takes in rows that were stored elsewhere, whole or not at all. What is there already, the same, is left alone, so the same rows can
    /// be sent again.
    ///
    /// # Errors
    /// [`WriteError`]; [`BadMutation::DuplicateId`](headwater_store::BadMutation::DuplicateId) where a row is there and says something else.
    pub async fn import(&self, rows: Vec<StoredRow>) -> Result<Imported, WriteError> {
        match self.writer.write(Work::Import(rows)).await? {
            Done::Imported(imported) => Ok(imported),
            Done::Removed | Done::TriggersPut | Done::Session(_) | Done::Written(_) => Err(mixed_up()),
        }
    }

    /// Closes the file and waits until that is done; where no other program has it open, its log is merged and gone then. Without this the
    /// writing thread does it when it comes to it.
    pub fn close(self) {
        let Self { readers, writer, .. } = self;
        drop(readers);
        writer.close();
    }
}

#[async_trait]
impl ConversationSource for SqliteStore {
    async fn epoch(&self) -> Result<Epoch, ReadError> {
        let look = || self.readers.read(|db| schema::look(db).map_err(failure::read_error));
        let (mut version, in_place) = look().await?;
        if !in_place {
            // First the triggers and then the epoch: what is read in it moves with every change again (C35).
            let put = self.writer.write(Work::PutTriggers).await;
            put.map_err(|error| ReadErrorKind::Unavailable(Box::new(error)))?;
            version = look().await?.0;
        }
        let epoch = self.life.epoch((epoch::file(&self.path), version), epoch::random);
        epoch.map_err(|error| ReadErrorKind::Unavailable(Box::new(error)).into())
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError> {
        let id = session.as_str().to_owned();
        self.readers.read(move |db| pages::session(db, &id).map_err(failure::read_error)).await
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: PageLimit,
    ) -> Result<Vec<SessionRecord>, ReadError> {
        let after = after.map(|session| session.as_str().to_owned()).unwrap_or_default();
        let page =
            format!("SELECT {} FROM task_sessions WHERE id > ?1 ORDER BY id LIMIT ?2", rows::SESSION_COLUMNS);
        let read = move |db: &rusqlite::Transaction<'_>| {
            let mut statement = db.prepare_cached(&page)?;
            let found = statement.query_map((after, u64::from(limit).cast_signed()), rows::session)?;
            found.collect::<rusqlite::Result<Vec<_>>>()
        };
        self.readers.read(move |db| read(db).map_err(failure::read_error)).await
    }

    async fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
        let query = query.clone();
        self.readers.read(move |db| pages::messages(db, &query)).await
    }

    async fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
        let query = query.clone();
        self.readers.read(move |db| pages::turns(db, &query)).await
    }

    async fn revisions(&self, sessions: &[SessionId]) -> Result<Vec<Option<Revision>>, ReadError> {
        let sessions = sessions.to_vec();
        self.readers.read(move |db| pages::revisions(db, &sessions)).await
    }
}

#[async_trait]
impl ConversationWriter for SqliteStore {
    async fn create_session(&self, session: NewSession) -> Result<SessionRecord, WriteError> {
        match self.writer.write(Work::CreateSession(session)).await? {
            Done::Session(record) => Ok(record),
            Done::Removed | Done::Imported(_) | Done::TriggersPut | Done::Written(_) => Err(mixed_up()),
        }
    }

    async fn delete_session(&self, session: &SessionId) -> Result<(), WriteError> {
        self.writer.write(Work::DeleteSession(session.clone())).await.map(drop)
    }

    async fn apply(&self, batch: Batch) -> Result<Written, WriteError> {
        match self.writer.write(Work::Apply(batch)).await? {
            Done::Written(written) => Ok(written),
            Done::Removed | Done::Imported(_) | Done::TriggersPut | Done::Session(_) => Err(mixed_up()),
        }
    }
}

fn mixed_up() -> WriteError {
    WriteErrorKind::Storage("the answer belongs to another request".into()).into()
}

#[cfg(test)]
mod tests;
