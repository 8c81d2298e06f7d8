//! The classes that shorten a field of a row: diffs, metadata, attachments, compacted (P15).

use headwater_model::{ByteCount, SessionId};
use headwater_prune::{Class, Classes, KeptReason, Rewrite, RowKind};
use headwater_wire::limits::MESSAGE_BYTES_MAX;
use rusqlite::OptionalExtension;

use super::answer::{PruneErrorKind, of_session};
use super::bulk::{Halt, Pass};
use super::content::text_bytes;
use super::pruner::Pruner;
use super::step::Step;
use super::work::Work;
use crate::fence::{Refusal, SessionPlace, Subject};
use crate::lock;
use crate::plan::Kept;
use crate::undo::Unit;

/// Most bytes of row data that are held for one transaction.
const CHUNK_BYTES: usize = 4 << 20;

/// A row with the data it is to get.
struct Rewritten {
    table: &'static str,
    rowid: i64,
    id: String,
    before: Vec<u8>,
    after: Vec<u8>,
    classes: Classes,
}

impl Pruner<'_> {
    pub(super) fn fields(
        &mut self,
        pass: &mut Pass<'_>,
        session: &SessionId,
        work: &Work,
    ) -> Result<(), Halt> {
        let mut chunk: Vec<Rewritten> = Vec::new();
        let mut chunk_bytes = 0;
        for ((table, rowid), classes) in &work.fields {
            if chunk.last().is_some_and(|last| last.table != *table) || chunk_bytes > CHUNK_BYTES {
                self.write_fields(pass, session, &mut chunk)?;
                chunk_bytes = 0;
            }
            match self.read_field(table, *rowid, *classes)? {
                Ok(Some(rewritten)) => {
                    chunk_bytes += rewritten.before.len() + rewritten.after.len();
                    chunk.push(rewritten);
                }
                Ok(None) => {}
                Err((message, reason)) => {
                    pass.report.keep(pass.plan, Kept { session: session.clone(), message, reason });
                }
            }
        }
        self.write_fields(pass, session, &mut chunk)
    }

    /// Reads a row and computes its new data, outside the lock. `None` where the classes take nothing.
    #[expect(clippy::type_complexity, reason = "what stays is a message, if it is known, and a reason")]
    fn read_field(
        &self,
        table: &'static str,
        rowid: i64,
        classes: Classes,
    ) -> Result<Result<Option<Rewritten>, (Option<String>, KeptReason)>, PruneErrorKind> {
        let connection = self.database.connection();
        let (kind, message) = match table {
            "message" => (RowKind::Message, "id"),
            "part" => (RowKind::Part, "message_id"),
            _ => (RowKind::SessionMessage, "id"),
        };
        let row_type = if kind == RowKind::SessionMessage { "type" } else { "NULL" };
        let head: Option<(String, String, Option<String>, i64)> = connection
            .prepare_cached(&format!(
                "SELECT id, {message}, {row_type}, octet_length(data) FROM {table} WHERE rowid = ?1"
            ))?
            .query_row([rowid], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .optional()?;
        let Some((id, message, row_type, bytes)) = head else { return Ok(Err((None, KeptReason::Gone))) };
        if usize::try_from(bytes).is_ok_and(|bytes| bytes > MESSAGE_BYTES_MAX) {
            return Ok(Err((Some(message), KeptReason::Oversized)));
        }
        let before = connection
            .prepare_cached(&format!("SELECT data FROM {table} WHERE rowid = ?1 AND id = ?2"))?
            .query_row((rowid, &id), |row| Ok(text_bytes(row, 0)?.map(<[u8]>::to_vec)))
            .optional()?
            .flatten();
        let Some(before) = before else { return Ok(Err((Some(message), KeptReason::Unreadable))) };
        let after = match headwater_prune::rewrite(kind, &before, classes) {
            Ok(Rewrite::Unchanged) => return Ok(Ok(None)),
            Ok(Rewrite::Changed(after)) => after,
            Err(_) => return Ok(Err((Some(message), KeptReason::Unreadable))),
        };
        if headwater_prune::ensure_not_worse(kind, row_type.as_deref(), &before, &after).is_err() {
            return Ok(Err((Some(message), KeptReason::Unreadable)));
        }
        Ok(Ok(Some(Rewritten { table, rowid, id, before, after, classes })))
    }

    /// Writes the rows of `chunk`, which are of one table, in as many short transactions as it takes. Leaves it empty.
    fn write_fields(
        &mut self,
        pass: &mut Pass<'_>,
        session: &SessionId,
        chunk: &mut Vec<Rewritten>,
    ) -> Result<(), Halt> {
        let Some(first) = chunk.first() else { return Ok(()) };
        let Some(place) = self.place(session, first.table)? else {
            Self::keep_session(pass, session, KeptReason::Gone);
            chunk.clear();
            return Ok(());
        };
        self.archive_fields(&place, chunk)?;
        self.observer.reached(Step::FieldsRead.name());
        let mut rest = &chunk[..];
        while !rest.is_empty() {
            match self.write_some(&place, rest)? {
                Ok(written) => {
                    for (row, is_written) in rest.iter().zip(&written) {
                        account(pass, row, *is_written);
                    }
                    rest = &rest[written.len()..];
                    self.patience(false)?;
                }
                Err(Refusal::AskedTooLongAgo) => self.patience(true)?,
                Err(refusal) => {
                    let reason = of_session(refusal).map_err(Halt::Blocked)?;
                    for row in rest {
                        account(pass, row, false);
                    }
                    Self::keep_session(pass, session, reason);
                    break;
                }
            }
        }
        chunk.clear();
        Ok(())
    }

    fn archive_fields(&mut self, place: &SessionPlace, chunk: &[Rewritten]) -> Result<(), Halt> {
        let Some(archive) = self.archive.as_deref_mut() else { return Ok(()) };
        let Some(class) = chunk.first().and_then(|row| row.classes.iter().next()) else { return Ok(()) };
        let connection = self.database.connection();
        let unit = Unit { class, place: place.clone(), message: None, receipt: None };
        archive.append(&unit, |frame| {
            chunk.iter().try_for_each(|row| frame.rewritten(connection, row.table, row.rowid, &row.after))
        })?;
        Ok(())
    }

    /// One transaction over the first rows of `rows`. Answers for each row that it came to whether it was written.
    fn write_some(
        &mut self,
        place: &SessionPlace,
        rows: &[Rewritten],
    ) -> Result<Result<Vec<bool>, Refusal>, Halt> {
        self.locks.prepare()?;
        let asked = match self.fence.ask(place) {
            Ok(asked) => asked,
            Err(reason) => return Ok(Err(reason.into())),
        };
        self.observer.reached(Step::Asked.name());
        let fence = &mut self.fence;
        let written = self.locks.run(|held| {
            if let Err(refusal) = fence.check(held, place, asked, Subject::Content)? {
                return Ok(lock::Step::Rollback(Err(refusal)));
            }
            let mut written = Vec::new();
            for row in rows {
                let sql = format!(
                    "UPDATE {} SET data = CAST(?1 AS TEXT) WHERE rowid = ?2 AND id = ?3 AND data = CAST(?4 AS TEXT)",
                    row.table
                );
                let mut update = held.connection().prepare_cached(&sql)?;
                written.push(update.execute((&row.after, row.rowid, &row.id, &row.before))? == 1);
                if held.is_due() {
                    break;
                }
            }
            Ok::<_, PruneErrorKind>(lock::Step::Commit(Ok(written)))
        })?;
        if written.is_ok() {
            self.observer.reached(Step::Committed.name());
        }
        Ok(written)
    }
}

/// Counts a row under the first of its classes; a row that changed since it was read stays as it is.
fn account(pass: &mut Pass<'_>, row: &Rewritten, is_written: bool) {
    let class = row.classes.iter().next().unwrap_or(Class::Metadata);
    if is_written {
        let done = pass.report.class(class);
        done.rows_rewritten += 1;
        done.bytes += ByteCount::new((row.before.len().saturating_sub(row.after.len())) as u64);
    } else {
        pass.report.rows_left.entry(class).or_default().changed += 1;
    }
}
