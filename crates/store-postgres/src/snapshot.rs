//! Reading much at one instant.

use std::ops::ControlFlow;

use deadpool_postgres::{Client, Transaction};
use headwater_model::conversation::{MessageRecord, SessionRecord, TurnRecord};
use headwater_model::{Revision, SessionId, WallTime};
use headwater_store::transfer::{Owner, StoredRow, Table};
use headwater_store::{Finding, Page, PageQuery, ReadError, SessionOverview};
use tokio_postgres::{Error, IsolationLevel};

use crate::failure::{Failed, Unread};
use crate::{check, pages, rows, stored};

/// Rows that are fetched at a time.
const FETCH: &str = "FETCH 100 FROM headwater_rows";

/// A connection that reads.
#[derive(Debug)]
pub struct Reader(Client);

impl Reader {
    pub(crate) const fn new(client: Client) -> Self {
        Self(client)
    }

    /// Begins a read-only transaction: everything that is read in it is of one instant.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn snapshot(&mut self) -> Result<Snapshot<'_>, ReadError> {
        let begun =
            self.0.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        begun.start().await.map(Snapshot).map_err(read_error)
    }
}

/// A read-only transaction.
pub struct Snapshot<'a>(Transaction<'a>);

fn read_error(error: Error) -> ReadError {
    Failed::from(error).of_read()
}

fn unread(unread: Unread) -> ReadError {
    match unread {
        Unread::Failed(failed) => failed.of_read(),
        Unread::Refused(kind) => kind.into(),
    }
}

impl Snapshot<'_> {
    /// The row of a session; none where there is no such session.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError> {
        let sql = format!("SELECT {} FROM task_sessions WHERE id = $1", rows::session_columns());
        let found = self.0.query_opt(&sql, &[&session.as_str()]).await;
        found.and_then(|found| found.as_ref().map(rows::session).transpose()).map_err(read_error)
    }

    /// At most `limit` sessions by the bytes of their ids, behind `after`.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn overview(&self, after: &str, limit: u32) -> Result<Vec<SessionOverview>, ReadError> {
        let sql = format!(
            "SELECT {}, (SELECT title FROM tasks t WHERE t.id = task_sessions.task_id),
                 (SELECT count(*) FROM task_session_messages m WHERE m.task_session_id = task_sessions.id),
                 coalesce((SELECT revision FROM conversation_session_revisions r WHERE r.session_id = task_sessions.id), 0),
                 (SELECT to_char(m.created_at, 'YYYY-MM-DD HH24:MI:SS.US') FROM task_session_messages m
                  WHERE m.task_session_id = task_sessions.id ORDER BY m.created_at DESC NULLS LAST LIMIT 1)
             FROM task_sessions WHERE id COLLATE \"C\" > $1 ORDER BY id COLLATE \"C\" LIMIT $2",
            rows::session_columns()
        );
        let read = |row: &tokio_postgres::Row| {
            let session = rows::session(row)?;
            let newest: Option<String> = row.try_get(10)?;
            let newest = newest.and_then(|text| WallTime::parse_stored(&text).ok());
            Ok(SessionOverview {
                last_activity: newest.unwrap_or(WallTime::UNKNOWN).max(session.updated_at),
                task_title: row.try_get::<_, Option<String>>(7)?.unwrap_or_default(),
                messages: row.try_get::<_, i64>(8)?.unsigned_abs(),
                revision: Revision::new(row.try_get(9)?).unwrap_or_default(),
                session,
            })
        };
        let found = self.0.query(&sql, &[&after, &i64::from(limit)]).await;
        found.and_then(|found| found.iter().map(read).collect()).map_err(read_error)
    }

    /// A page of messages (C7).
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
        pages::messages(&self.0, query).await.map_err(unread)
    }

    /// A page of the turns that are visible (C7, C33).
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
        pages::turns(&self.0, query).await.map_err(unread)
    }

    /// Gives each row of `table` that `owner` has to `each`, in order, until that breaks off.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn each_row(
        &self,
        table: Table,
        owner: Owner<'_>,
        each: &mut dyn FnMut(StoredRow) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.fetch(table, owner, each).await.map_err(read_error)
    }

    async fn fetch(
        &self,
        table: Table,
        owner: Owner<'_>,
        each: &mut dyn FnMut(StoredRow) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let has = stored::has(self.0.client(), table).await?;
        let sql = stored::select(table, owner, &has);
        self.0.batch_execute(&format!("DECLARE headwater_rows NO SCROLL CURSOR FOR {sql}")).await?;
        loop {
            let found = self.0.query(FETCH, &[]).await?;
            let mut is_over = found.is_empty();
            for row in &found {
                is_over |= each(stored::row(row, table, &has)?).is_break();
                if is_over {
                    break;
                }
            }
            if is_over {
                return self.0.batch_execute("CLOSE headwater_rows").await;
            }
        }
    }

    /// Looks for what is wrong or odd. Pages of the database are its own affair.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn check(&self) -> Result<Vec<Finding>, ReadError> {
        let mut findings = check::check(self.0.client()).await.map_err(read_error)?;
        for table in [Table::Sessions, Table::Turns, Table::Messages] {
            let (mut count, mut examples) = (0, Vec::new());
            let mut look = |row: StoredRow| {
                if check::has_bad_metadata(&row) {
                    count += 1;
                    check::example(&mut examples, row.key());
                }
                ControlFlow::Continue(())
            };
            self.each_row(table, Owner::Everything, &mut look).await?;
            findings.extend(headwater_store::Fault::InvalidMetadata.found(
                Some(table.name()),
                count,
                examples,
            ));
        }
        Ok(findings)
    }
}
