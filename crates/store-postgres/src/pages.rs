//! Pages of messages and turns.

use deadpool_postgres::Transaction;
use headwater_model::conversation::{Author, MessageRecord, TurnRecord};
use headwater_model::{Revision, SessionId};
use headwater_store::{Page, PageQuery, ReadErrorKind, Sort, Stretch, rules};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::failure::Unread;
use crate::rows;

/// The revisions of sessions, in their order; none where there is no such session.
pub(crate) async fn revisions(
    transaction: &Transaction<'_>,
    sessions: &[SessionId],
) -> Result<Vec<Option<Revision>>, Unread> {
    let ids: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    let sql = "SELECT CASE WHEN s.id IS NOT NULL THEN coalesce(r.revision, 0) END
               FROM unnest($1::text[]) WITH ORDINALITY AS wanted (id, number)
                   LEFT JOIN task_sessions s ON s.id = wanted.id
                   LEFT JOIN conversation_session_revisions r ON r.session_id = s.id
               ORDER BY wanted.number";
    let found = transaction.query(&transaction.prepare_cached(sql).await?, &[&ids]).await?;
    let counter = |row: &Row| row.try_get::<_, Option<i64>>(0);
    let stored = found.iter().map(counter).collect::<Result<Vec<_>, Error>>()?;
    Ok(stored
        .into_iter()
        .map(|counter| counter.map(|counter| Revision::new(counter).unwrap_or_default()))
        .collect())
}

/// A page of messages (C7).
pub(crate) async fn messages(
    transaction: &Transaction<'_>,
    query: &PageQuery,
) -> Result<Page<MessageRecord>, Unread> {
    let only_prompts =
        query.selection.authors.as_ref().is_some_and(|authors| authors.iter().eq([&Author::User]));
    let filter = match &query.selection.authors {
        None => String::new(),
        // The literal lets the index of prompts serve.
        Some(_) if only_prompts => " AND author_type = 'user'".to_owned(),
        Some(authors) => {
            let names: Vec<String> = authors.iter().map(|author| format!("'{}'", author.stored())).collect();
            format!(" AND author_type = ANY (ARRAY[{}]::text[])", names.join(", "))
        }
    };
    let reader = Reader {
        transaction,
        query,
        table: "task_session_messages",
        time: "created_at",
        columns: rows::message_columns(),
        filter,
    };
    reader.page(|row| rows::message(row).map(Some)).await
}

/// A page of turns, without those that are only reserved (C33).
pub(crate) async fn turns(
    transaction: &Transaction<'_>,
    query: &PageQuery,
) -> Result<Page<TurnRecord>, Unread> {
    // Few turns speak of being reserved; only for them is it looked up whether a message names them.
    let unnamed = "coalesce(metadata, '') LIKE '%prompt_dispatch_pending%' AND NOT EXISTS \
                   (SELECT 1 FROM task_session_messages m WHERE m.turn_id = task_session_turns.id)";
    let columns = format!("{}, {unnamed}", rows::turn_columns());
    let (table, time) = ("task_session_turns", "started_at");
    let reader = Reader { transaction, query, table, time, columns, filter: String::new() };
    let visible = |row: &Row| {
        let turn = rows::turn(row)?;
        let unnamed: bool = row.try_get(10)?;
        Ok((!unnamed || !rules::is_reserved(&turn.metadata)).then_some(turn))
    };
    reader.page(visible).await
}

struct Reader<'a> {
    transaction: &'a Transaction<'a>,
    query: &'a PageQuery,
    table: &'static str,
    time: &'static str,
    columns: String,
    filter: String,
}

impl Reader<'_> {
    async fn page<R>(&self, read: impl Fn(&Row) -> Result<Option<R>, Error>) -> Result<Page<R>, Unread> {
        let revision = self.state().await?;
        let limit = self.query.limit.get();
        let mut records: Vec<R> = Vec::with_capacity(limit + 1);
        for stretch in Stretch::behind(self.query.after.as_ref(), self.query.sort) {
            self.read_stretch(stretch, &read, &mut records).await?;
        }
        let has_more = records.len() > limit;
        records.truncate(limit);
        Ok(Page { records, revision, has_more })
    }

    async fn state(&self) -> Result<Revision, Unread> {
        let session = std::slice::from_ref(&self.query.session);
        let current = revisions(self.transaction, session).await?.pop().flatten();
        let current = current.ok_or(Unread::Refused(ReadErrorKind::UnknownSession))?;
        match self.query.expected {
            Some(expected) if expected != current => {
                Err(Unread::Refused(ReadErrorKind::RevisionMoved { current }))
            }
            _ => Ok(current),
        }
    }

    /// Reads on until one record more than the page holds is there. Records that are not visible are read over, so that may take several
    /// statements, each behind the last row of the one before.
    async fn read_stretch<R>(
        &self,
        stretch: Stretch,
        read: &impl Fn(&Row) -> Result<Option<R>, Error>,
        records: &mut Vec<R>,
    ) -> Result<(), Error> {
        let wanted = self.query.limit.get() + 1;
        let mut skipped = 0_i64;
        while records.len() < wanted {
            let missing = i64::try_from(wanted - records.len()).unwrap_or(i64::MAX);
            let found = self.select(&stretch, missing, skipped).await?;
            for row in &found {
                records.extend(read(row)?);
            }
            let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
            if count < missing {
                break;
            }
            skipped += count;
        }
        Ok(())
    }

    async fn select(&self, stretch: &Stretch, limit: i64, offset: i64) -> Result<Vec<Row>, Error> {
        let sql = self.sql(stretch);
        let session = self.query.session.as_str();
        let task = self.query.selection.task.as_ref().map(|task| task.as_str().to_owned());
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&session, &limit, &offset];
        values.extend(task.as_ref().map(|task| task as &(dyn ToSql + Sync)));
        let (time, id) = bound(stretch);
        values.extend(time.as_ref().map(|time| time as &(dyn ToSql + Sync)));
        values.extend(id.as_ref().map(|id| id as &(dyn ToSql + Sync)));
        self.transaction.query(&self.transaction.prepare_cached(&sql).await?, &values).await
    }

    /// The statement that reads a stretch. Its order names the time also where that is one value: for a time that is NULL PostgreSQL would sort
    /// by the id instead of reading on in the index.
    fn sql(&self, stretch: &Stretch) -> String {
        let Self { columns, table, time, filter, .. } = self;
        let (behind, direction, nulls) =
            if self.query.sort == Sort::Asc { (">", "ASC", "FIRST") } else { ("<", "DESC", "LAST") };
        let mut next = 4;
        let mut place = || {
            next += 1;
            next - 1
        };
        let task = match self.query.selection.task {
            Some(_) => format!(" AND task_id = ${}", place()),
            None => String::new(),
        };
        let mut time_is = |sign: &str| format!(" AND {time} {sign} ${}::text::timestamp", place());
        let condition = match stretch {
            Stretch::Whole => String::new(),
            Stretch::Timeless(_) => format!(" AND {time} IS NULL"),
            Stretch::Timed(None) => format!(" AND {time} IS NOT NULL"),
            Stretch::Ties(..) => time_is("="),
            Stretch::Timed(Some(_)) => time_is(behind),
        };
        let id = match stretch {
            Stretch::Ties(..) | Stretch::Timeless(Some(_)) => {
                format!(" AND id COLLATE \"C\" {behind} ${}", place())
            }
            Stretch::Whole | Stretch::Timeless(None) | Stretch::Timed(_) => String::new(),
        };
        format!(
            "SELECT {columns} FROM {table} WHERE task_session_id = $1{task}{filter}{condition}{id}
             ORDER BY {time} {direction} NULLS {nulls}, id COLLATE \"C\" {direction} LIMIT $2 OFFSET $3"
        )
    }
}

/// What a stretch binds: a time, an id.
fn bound(stretch: &Stretch) -> (Option<String>, Option<String>) {
    match stretch {
        Stretch::Whole | Stretch::Timeless(None) | Stretch::Timed(None) => (None, None),
        Stretch::Timeless(Some(id)) => (None, Some(id.clone())),
        Stretch::Timed(Some(time)) => (Some(time.as_str().to_owned()), None),
        Stretch::Ties(time, id) => (Some(time.as_str().to_owned()), Some(id.clone())),
    }
}

#[cfg(test)]
mod tests;
