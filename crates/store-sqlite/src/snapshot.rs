//! Reading from a connection that somebody else opened, at one instant, without a trace.

use std::ops::ControlFlow;

use headwater_model::conversation::{MessageRecord, SessionRecord, TurnRecord};
use headwater_model::{OrderTime, Revision, SessionId, WallTime};
use headwater_store::transfer::{Owner, StoredRow, Table};
use headwater_store::{Finding, Page, PageQuery, ReadError, SessionOverview};
use rusqlite::{Connection, Transaction};

use crate::failure::read_error;
use crate::order::order_time;
use crate::{check, pages, rows, stored};

/// A read transaction on a file: everything that is read in it is of one instant. Writes nothing.
#[derive(Debug)]
pub struct Snapshot<'a>(Transaction<'a>);

impl<'a> Snapshot<'a> {
    /// Begins on `db`, which must stand outside of a transaction and whose file must be readable
    /// ([`Inspection::is_readable`](headwater_store::Inspection::is_readable)).
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn begin(db: &'a Connection) -> Result<Self, ReadError> {
        db.unchecked_transaction().map(Self).map_err(read_error)
    }

    /// The row of a session; none where there is no such session.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn session(&self, session: &SessionId) -> Result<Option<SessionRecord>, ReadError> {
        pages::session(&self.0, session.as_str()).map_err(read_error)
    }

    /// At most `limit` sessions by the bytes of their ids, behind `after`.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn overview(&self, after: &str, limit: u32) -> Result<Vec<SessionOverview>, ReadError> {
        let newest = order_time("m.created_at");
        let sql = format!(
            "SELECT {}, (SELECT title FROM tasks t WHERE t.id = task_sessions.task_id),
                 (SELECT count(*) FROM task_session_messages m WHERE m.task_session_id = task_sessions.id),
                 coalesce((SELECT revision FROM conversation_session_revisions r WHERE r.session_id = task_sessions.id), 0),
                 (SELECT {newest} FROM task_session_messages m WHERE m.task_session_id = task_sessions.id
                  ORDER BY {newest} DESC LIMIT 1)
             FROM task_sessions WHERE id > ?1 ORDER BY id LIMIT ?2",
            rows::SESSION_COLUMNS
        );
        let read = |row: &rusqlite::Row<'_>| {
            let session = rows::session(row)?;
            let newest = OrderTime::from_stored(rows::text(row, 10)?);
            let newest = WallTime::parse_stored(newest.as_str()).unwrap_or(WallTime::UNKNOWN);
            Ok(SessionOverview {
                last_activity: newest.max(session.updated_at),
                task_title: rows::text(row, 7)?,
                messages: row.get::<_, i64>(8)?.unsigned_abs(),
                revision: Revision::new(row.get(9)?).unwrap_or_default(),
                session,
            })
        };
        let list = || -> rusqlite::Result<Vec<_>> {
            self.0.prepare_cached(&sql)?.query_map((after, limit), read)?.collect()
        };
        list().map_err(read_error)
    }

    /// A page of messages (C7).
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn messages(&self, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
        pages::messages(&self.0, query)
    }

    /// A page of the turns that are visible (C7, C33).
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn turns(&self, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
        pages::turns(&self.0, query)
    }

    /// Gives each row of `table` that `owner` has to `each`, in order, until that breaks off.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn each_row(
        &self,
        table: Table,
        owner: Owner<'_>,
        each: &mut dyn FnMut(StoredRow) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let mut read = || {
            let has = stored::has(&self.0, table)?;
            let mut statement = self.0.prepare_cached(&stored::select(table, owner, &has))?;
            let mut found = statement.query([stored::bound(owner)])?;
            while let Some(row) = found.next()? {
                if each(stored::row(row, table, &has)?).is_break() {
                    break;
                }
            }
            Ok(())
        };
        read().map_err(read_error)
    }

    /// Looks for damage and for what is odd.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn check(&self) -> Result<Vec<Finding>, ReadError> {
        check::check(&self.0).map_err(read_error)
    }
}
