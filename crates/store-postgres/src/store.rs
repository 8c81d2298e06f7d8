//! The store as others see it.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Transaction};
use headwater_model::conversation::{MessageRecord, SessionRecord, TurnRecord};
use headwater_model::{Epoch, Revision, SessionId};
use headwater_store::apply::{self, Failure};
use headwater_store::transfer::{Imported, StoredRow};
use headwater_store::{
    Batch, ContentLimit, ConversationSource, ConversationWriter, Inspection, Life, NewSession, Page,
    PageLimit, PageQuery, ReadError, ReadErrorKind, WriteError, Written,
};
use tokio_postgres::config::Host;
use tokio_postgres::{Config, Error, IsolationLevel, NoTls};

use crate::epoch::{self, IDENTITY};
use crate::failure::{Failed, Unread};
use crate::run_tx::{ATTEMPTS, Task, run_tx};
use crate::schema::{self, OpenError};
use crate::snapshot::Reader;
use crate::transaction::InTransaction;
use crate::triggers::{self, PutInPlace};
use crate::{inspect, pages, rows};

/// What PostgreSQL's views of its activity call the store's connections, where the address names nothing else.
const APPLICATION: &str = "headwater";

/// How a database is opened.
#[derive(Clone, Copy, Debug)]
pub struct PostgresOptions {
    /// Most connections at the same time.
    pub connections: usize,
    /// How long a call waits for one of them.
    pub wait: Duration,
    /// Most bytes of content in one message.
    pub content_limit: ContentLimit,
}

impl Default for PostgresOptions {
    /// 16 connections, five seconds, 16 MiB.
    fn default() -> Self {
        Self { connections: 16, wait: Duration::from_secs(5), content_limit: ContentLimit::default() }
    }
}

/// A conversation store in PostgreSQL. Needs a tokio runtime. Connections are not encrypted: use a socket or a network of your own. An
/// address that asks for encryption is refused.
#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    life: Life<String>,
    limit: ContentLimit,
}

impl PostgresStore {
    /// Connects to the database at `address` (`postgres://…` or `host=… dbname=…`) and brings its schema up to date.
    ///
    /// # Errors
    /// [`OpenError`]; nothing in the database has changed.
    pub async fn open(address: &str, options: PostgresOptions) -> Result<Self, OpenError> {
        let store = Self::attach(address, options)?;
        schema::prepare(&store.pool).await?;
        Ok(store)
    }

    /// How the database at `address` is called where people see it: hosts, ports and the name, no user and no password.
    ///
    /// # Errors
    /// [`OpenError`] where the address is malformed.
    pub fn shown(address: &str) -> Result<String, OpenError> {
        let config: Config = address.parse().map_err(|error| OpenError::Options(Box::new(error)))?;
        let ports = config.get_ports();
        let hosts = config.get_hosts().iter().enumerate().map(|(place, host)| {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(folder) => folder.display().to_string(),
            };
            match ports.get(place).or(ports.first()) {
                Some(port) => format!("{host}:{port}"),
                None => host,
            }
        });
        let hosts = hosts.collect::<Vec<_>>().join(",");
        Ok(format!("postgres://{hosts}/{}", config.get_dbname().unwrap_or_default()))
    }

    /// As [`PostgresStore::open`], for a database whose schema is left as it is, whatever it is: [`PostgresStore::inspect`] says whether it
    /// can be read and written. Connects with the first call.
    ///
    /// # Errors
    /// [`OpenError`] where the address is malformed.
    pub fn attach(address: &str, options: PostgresOptions) -> Result<Self, OpenError> {
        let mut config: Config = address.parse().map_err(|error| OpenError::Options(Box::new(error)))?;
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION);
        }
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, NoTls, recycling))
            .runtime(Runtime::Tokio1)
            .max_size(options.connections)
            .wait_timeout(Some(options.wait))
            .create_timeout(Some(options.wait))
            .build()
            .map_err(|error| OpenError::Options(Box::new(error)))?;
        Ok(Self { pool, life: Life::begin(None, epoch::random()?), limit: options.content_limit })
    }

    /// Whose database it is, and what it would take to work with it. Only reads.
    ///
    /// # Errors
    /// [`OpenError`] where it cannot be reached or read.
    pub async fn inspect(&self) -> Result<Inspection, OpenError> {
        let client = self.pool.get().await.map_err(Failed::from)?;
        Ok(inspect::inspect(&client).await.map_err(Failed::from)?)
    }

    /// A connection of its own, for reading much at one instant.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn reader(&self) -> Result<Reader, ReadError> {
        let client = self.pool.get().await.map_err(|error| Failed::from(error).of_read())?;
        Ok(Reader::new(client))
    }

    /// Takes in rows that were stored elsewhere, whole or not at all. What is there already, the same, is left alone, so the same rows can
    /// be sent again.
    ///
    /// # Errors
    /// [`WriteError`]; [`BadMutation::DuplicateId`](headwater_store::BadMutation::DuplicateId) where a row is there and says something else.
    pub async fn import(&self, rows: Vec<StoredRow>) -> Result<Imported, WriteError> {
        run_tx(&self.pool, &Import(rows)).await
    }

    /// Reads in one transaction at one snapshot. Where the connection turns out to be lost, on another one.
    async fn read<R: Read>(&self, what: R) -> Result<R::Answer, ReadError> {
        let mut attempt = 1;
        loop {
            match self.try_read(&what).await {
                Err(Unread::Failed(failed)) if attempt < ATTEMPTS && failed.is_lost() => attempt += 1,
                Err(Unread::Failed(failed)) => return Err(failed.of_read()),
                Err(Unread::Refused(kind)) => return Err(kind.into()),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    async fn try_read<R: Read>(&self, what: &R) -> Result<R::Answer, Unread> {
        let mut client = self.pool.get().await.map_err(Failed::from)?;
        let begun =
            client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let transaction = begun.start().await?;
        let answer = what.read(&transaction).await?;
        transaction.commit().await?;
        Ok(answer)
    }
}

/// Something to read at one snapshot.
trait Read {
    type Answer;
    async fn read(&self, transaction: &Transaction<'_>) -> Result<Self::Answer, Unread>;
}

struct Messages<'a>(&'a PageQuery);

impl Read for Messages<'_> {
    type Answer = Page<MessageRecord>;
    async fn read(&self, transaction: &Transaction<'_>) -> Result<Self::Answer, Unread> {
        pages::messages(transaction, self.0).await
    }
}

struct Turns<'a>(&'a PageQuery);

impl Read for Turns<'_> {
    type Answer = Page<TurnRecord>;
    async fn read(&self, transaction: &Transaction<'_>) -> Result<Self::Answer, Unread> {
        pages::turns(transaction, self.0).await
    }
}

struct Revisions<'a>(&'a [SessionId]);

impl Read for Revisions<'_> {
    type Answer = Vec<Option<Revision>>;
    async fn read(&self, transaction: &Transaction<'_>) -> Result<Self::Answer, Unread> {
        pages::revisions(transaction, self.0).await
    }
}

/// Sessions by the bytes of their ids: one, or those behind one.
enum Sessions<'a> {
    One(&'a SessionId),
    Behind(&'a str, PageLimit),
}

impl Read for Sessions<'_> {
    type Answer = Vec<SessionRecord>;
    async fn read(&self, transaction: &Transaction<'_>) -> Result<Self::Answer, Unread> {
        let (condition, id, limit) = match self {
            Self::One(session) => ("id = $1", session.as_str(), 1),
            Self::Behind(id, limit) => ("id COLLATE \"C\" > $1", *id, u64::from(*limit).cast_signed()),
        };
        let columns = rows::session_columns();
        let sql = format!(
            "SELECT {columns} FROM task_sessions WHERE {condition} ORDER BY id COLLATE \"C\" LIMIT $2"
        );
        let found = transaction.query(&transaction.prepare_cached(&sql).await?, &[&id, &limit]).await?;
        Ok(found.iter().map(rows::session).collect::<Result<_, Error>>()?)
    }
}

struct Identity;

impl Read for Identity {
    /// Whether the triggers are as they were left, and what names this life of the database.
    type Answer = (bool, String);
    async fn read(&self, transaction: &Transaction<'_>) -> Result<(bool, String), Unread> {
        let database: String = transaction.query_one(IDENTITY, &[]).await?.try_get(0)?;
        let (as_left, found) = triggers::find(transaction).await?;
        Ok((as_left, format!("{database} {found}")))
    }
}

#[async_trait]
impl ConversationSource for PostgresStore {
    async fn epoch(&self) -> Result<Epoch, ReadError> {
        let (as_left, mut identity) = self.read(Identity).await?;
        if !as_left {
            // First the triggers and then the epoch: what is read in it moves with every change again (C35).
            let put = run_tx(&self.pool, &PutInPlace).await;
            put.map_err(|error| ReadErrorKind::Unavailable(Box::new(error)))?;
            identity = self.read(Identity).await?.1;
        }
        self.life
            .epoch(identity, epoch::random)
            .map_err(|error| ReadErrorKind::Unavailable(Box::new(error)).into())
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError> {
        Ok(self.read(Sessions::One(session)).await?.pop())
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: PageLimit,
    ) -> Result<Vec<SessionRecord>, ReadError> {
        let behind = after.map(SessionId::as_str).unwrap_or_default();
        self.read(Sessions::Behind(behind, limit)).await
    }

    async fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
        self.read(Messages(query)).await
    }

    async fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
        self.read(Turns(query)).await
    }

    async fn revisions(&self, sessions: &[SessionId]) -> Result<Vec<Option<Revision>>, ReadError> {
        self.read(Revisions(sessions)).await
    }
}

struct Apply(Batch, ContentLimit);

impl Task for Apply {
    type Answer = Written;
    async fn run(&self, transaction: &Transaction<'_>) -> Result<Written, Failure<Error>> {
        apply::apply(&mut InTransaction::new(transaction), &self.0, self.1).await
    }
}

struct Import(Vec<StoredRow>);

impl Task for Import {
    type Answer = Imported;
    async fn run(&self, transaction: &Transaction<'_>) -> Result<Imported, Failure<Error>> {
        apply::import(&mut InTransaction::new(transaction), &self.0).await
    }
}

struct CreateSession(NewSession);

impl Task for CreateSession {
    type Answer = SessionRecord;
    async fn run(&self, transaction: &Transaction<'_>) -> Result<SessionRecord, Failure<Error>> {
        apply::create_session(&mut InTransaction::new(transaction), &self.0).await
    }
}

struct DeleteSession<'a>(&'a SessionId);

impl Task for DeleteSession<'_> {
    type Answer = ();
    async fn run(&self, transaction: &Transaction<'_>) -> Result<(), Failure<Error>> {
        apply::delete_session(&mut InTransaction::new(transaction), self.0).await
    }
}

#[async_trait]
impl ConversationWriter for PostgresStore {
    async fn create_session(&self, session: NewSession) -> Result<SessionRecord, WriteError> {
        run_tx(&self.pool, &CreateSession(session)).await
    }

    async fn delete_session(&self, session: &SessionId) -> Result<(), WriteError> {
        run_tx(&self.pool, &DeleteSession(session)).await
    }

    async fn apply(&self, batch: Batch) -> Result<Written, WriteError> {
        run_tx(&self.pool, &Apply(batch, self.limit)).await
    }
}
