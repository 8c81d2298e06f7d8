//! Pages of messages and turns.

use headwater_model::conversation::{Author, MessageRecord, SessionRecord, TurnRecord};
use headwater_model::{Revision, SessionId};
use headwater_store::{Page, PageQuery, ReadError, ReadErrorKind, Sort, Stretch, rules};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::failure::read_error;
use crate::order::order_time;
use crate::rows;

/// The revision of a session; none where there is no such session.
pub(crate) fn revision(db: &Connection, session: &str) -> rusqlite::Result<Option<Revision>> {
    let sql =
        "SELECT coalesce((SELECT revision FROM conversation_session_revisions WHERE session_id = s.id), 0)
               FROM task_sessions s WHERE s.id = ?1";
    let stored: Option<i64> =
        db.prepare_cached(sql)?.query_map([session], |row| row.get(0))?.next().transpose()?;
    // The CHECK of the table keeps it from being negative.
    Ok(stored.map(|counter| Revision::new(counter).unwrap_or_default()))
}

/// The row of a session.
pub(crate) fn session(db: &Connection, id: &str) -> rusqlite::Result<Option<SessionRecord>> {
    let sql = format!("SELECT {} FROM task_sessions WHERE id = ?1", rows::SESSION_COLUMNS);
    db.prepare_cached(&sql)?.query_map([id], rows::session)?.next().transpose()
}

/// A page of messages (C7).
pub(crate) fn messages(db: &Connection, query: &PageQuery) -> Result<Page<MessageRecord>, ReadError> {
    let only_prompts =
        query.selection.authors.as_ref().is_some_and(|authors| authors.iter().eq([&Author::User]));
    let mut filters = Filters::default();
    if only_prompts {
        // The literal lets the index of prompts serve.
        filters.add("author_type = 'user'", []);
    } else if let Some(authors) = &query.selection.authors {
        let marks = vec!["?"; authors.len()].join(", ");
        filters.add(
            &format!("author_type IN ({marks})"),
            authors.iter().map(|author| author.stored().to_owned().into()),
        );
    }
    let reader = Reader {
        db,
        query,
        table: "task_session_messages",
        time: "created_at",
        columns: rows::message_columns(),
    };
    reader.page(filters, |row| rows::message(row).map(Some))
}

/// A page of turns, without those that are only reserved (C33).
pub(crate) fn turns(db: &Connection, query: &PageQuery) -> Result<Page<TurnRecord>, ReadError> {
    // Few turns speak of being reserved; only for them is it looked up whether a message names them.
    let unnamed = "ifnull(metadata, '') LIKE '%prompt_dispatch_pending%' AND NOT EXISTS \
                   (SELECT 1 FROM task_session_messages m WHERE m.turn_id = task_session_turns.id)";
    let columns = format!("{}, {unnamed}", rows::turn_columns());
    let reader = Reader { db, query, table: "task_session_turns", time: "started_at", columns };
    let visible = |row: &Row<'_>| {
        let turn = rows::turn(row)?;
        let unnamed: bool = row.get(11)?;
        Ok((!unnamed || !rules::is_reserved(&turn.metadata)).then_some(turn))
    };
    reader.page(Filters::default(), visible)
}

/// Conditions beside the session and the key.
#[derive(Clone, Default)]
struct Filters {
    sql: String,
    values: Vec<Value>,
}

impl Filters {
    fn add(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.sql = format!("{} AND {condition}", self.sql);
        self.values.extend(values);
    }
}

struct Reader<'a> {
    db: &'a Connection,
    query: &'a PageQuery,
    table: &'static str,
    time: &'static str,
    columns: String,
}

impl Reader<'_> {
    fn page<R>(
        &self,
        mut filters: Filters,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<Option<R>>,
    ) -> Result<Page<R>, ReadError> {
        let revision = self.state()?;
        if let Some(task) = &self.query.selection.task {
            filters.add("task_id = ?", [task.as_str().to_owned().into()]);
        }
        let limit = self.query.limit.get();
        let mut records: Vec<R> = Vec::with_capacity(limit + 1);
        for stretch in Stretch::behind(self.query.after.as_ref(), self.query.sort) {
            self.read_stretch(&stretch, &filters, &read, &mut records).map_err(read_error)?;
        }
        let has_more = records.len() > limit;
        records.truncate(limit);
        Ok(Page { records, revision, has_more })
    }

    fn state(&self) -> Result<Revision, ReadError> {
        let session = &self.query.session;
        let current = revision(self.db, session.as_str()).map_err(read_error)?;
        let current = current.ok_or(ReadErrorKind::UnknownSession)?;
        match self.query.expected {
            Some(expected) if expected != current => Err(ReadErrorKind::RevisionMoved { current }.into()),
            _ => Ok(current),
        }
    }

    /// The statement that reads a stretch, and what is bound to it behind the session and the filters.
    fn select(&self, stretch: &Stretch, filters: &str) -> (String, Vec<Value>) {
        let time = order_time(self.time);
        let direction = if self.query.sort == Sort::Asc { "ASC" } else { "DESC" };
        let (condition, bound) = condition(stretch, &time, self.query.sort);
        // Where the time is one value, naming it in the order makes SQLite sort.
        let order = if stretch.has_one_time() { String::new() } else { format!("{time} {direction}, ") };
        let Self { columns, table, .. } = self;
        let sql = format!(
            "SELECT {columns} FROM {table} WHERE task_session_id = ?{filters}{condition} ORDER BY {order}id {direction}"
        );
        (sql, bound)
    }

    /// Reads on until one record more than the page holds is there. Rows that are not visible are read over, so a stretch may take
    /// several statements.
    fn read_stretch<R>(
        &self,
        stretch: &Stretch,
        filters: &Filters,
        read: &impl Fn(&Row<'_>) -> rusqlite::Result<Option<R>>,
        records: &mut Vec<R>,
    ) -> rusqlite::Result<()> {
        let wanted = self.query.limit.get() + 1;
        let (sql, mut bound) = self.select(stretch, &filters.sql);
        let mut values: Vec<Value> = vec![self.query.session.as_str().to_owned().into()];
        values.extend(filters.values.iter().cloned());
        values.append(&mut bound);
        let mut statement = self.db.prepare_cached(&sql)?;
        let mut found = statement.query(params_from_iter(values))?;
        // Rows are made one at a time, so nothing is read behind the last one that is taken.
        while records.len() < wanted {
            let Some(row) = found.next()? else { break };
            records.extend(read(row)?);
        }
        Ok(())
    }
}

/// The condition that selects a stretch, and what is bound to it.
fn condition(stretch: &Stretch, time: &str, sort: Sort) -> (String, Vec<Value>) {
    let behind = if sort == Sort::Asc { ">" } else { "<" };
    match stretch {
        Stretch::Whole => (String::new(), Vec::new()),
        Stretch::Timeless(None) => (format!(" AND {time} IS NULL"), Vec::new()),
        Stretch::Timeless(Some(id)) => {
            (format!(" AND {time} IS NULL AND id {behind} ?"), vec![id.clone().into()])
        }
        Stretch::Ties(at, id) => {
            let bound = vec![at.as_str().to_owned().into(), id.clone().into()];
            (format!(" AND {time} = ? AND id {behind} ?"), bound)
        }
        // Every text is larger, NULL is not.
        Stretch::Timed(None) => (format!(" AND {time} > ''"), Vec::new()),
        Stretch::Timed(Some(at)) => (format!(" AND {time} {behind} ?"), vec![at.as_str().to_owned().into()]),
    }
}

/// The revisions of many sessions, in their order (C19).
pub(crate) fn revisions(db: &Connection, sessions: &[SessionId]) -> Result<Vec<Option<Revision>>, ReadError> {
    sessions.iter().map(|session| revision(db, session.as_str()).map_err(read_error)).collect()
}

#[cfg(test)]
mod tests;
