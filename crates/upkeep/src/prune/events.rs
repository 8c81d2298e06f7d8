//! The event classes: rows of many sessions in each short transaction.

use headwater_model::{ByteCount, SessionId};
use headwater_prune::{Class, KeptReason, ROW_BYTES_MAX};
use rusqlite::{Connection, OptionalExtension};

use super::answer::{PruneErrorKind, of_session};
use super::bulk::{Halt, Pass};
use super::pruner::Pruner;
use super::step::Step;
use super::work::Work;
use crate::fence::{Asked, Refusal, SessionPlace, Subject};
use crate::lock::{self, Held};
use crate::undo::Unit;

/// Most rows and bytes that wait to be deleted together. What is left of them after one transaction goes into the next.
const WAITING_ROWS: usize = 16_000;
const WAITING_BYTES: u64 = 64 << 20;
/// A row that is larger is read before the lock is taken: deleting it follows the chain of all its pages (458 MiB take
/// 0.3 s from memory and 1.05 s from disk).
pub(super) const WARM_BYTES: u64 = 32 << 20;
/// Most sessions that are asked about before one transaction.
const ASKED_SESSIONS: usize = 256;
/// Most bytes of event rows in one frame of an archive.
const FRAME_BYTES: u64 = 8 << 20;

/// An event row that goes: an id is never given twice, so rowid and id name the row that was judged.
struct EventRow {
    class: Class,
    rowid: i64,
    id: String,
    bytes: u64,
}

/// The event rows of one session that wait.
struct Waiting {
    place: SessionPlace,
    rows: Vec<EventRow>,
    /// Rows that have been dealt with, from the front.
    done: usize,
}

#[derive(Default)]
struct Queue {
    sessions: Vec<Waiting>,
    rows: usize,
    bytes: u64,
}

impl Pruner<'_> {
    pub(super) fn event_pass(&mut self, pass: &mut Pass<'_>) -> Result<(), Halt> {
        let mut queue = Queue::default();
        self.each_session(pass, &[Class::SupersededEvents, Class::Events], |pruner, pass, session, work| {
            pruner.enqueue(pass, session, work, &mut queue)
        })?;
        self.flush(pass, &mut queue)
    }

    fn enqueue(
        &mut self,
        pass: &mut Pass<'_>,
        session: &SessionId,
        work: &Work,
        queue: &mut Queue,
    ) -> Result<(), Halt> {
        let mut rows = work.events.as_slice();
        while !rows.is_empty() {
            let Some(place) = self.place(session, "event")? else {
                Self::keep_session(pass, session, KeptReason::Gone);
                return Ok(());
            };
            let take = rows.len().min(WAITING_ROWS.saturating_sub(queue.rows).max(1));
            let waiting = self.examine(pass, place, &rows[..take])?;
            rows = &rows[take..];
            queue.rows += waiting.rows.len();
            queue.bytes += waiting.rows.iter().map(|row| row.bytes).sum::<u64>();
            queue.sessions.push(waiting);
            if queue.rows >= WAITING_ROWS || queue.bytes >= WAITING_BYTES {
                self.flush(pass, queue)?;
            }
        }
        Ok(())
    }

    /// Reads ids and sizes, outside the lock.
    fn examine(
        &self,
        pass: &mut Pass<'_>,
        place: SessionPlace,
        rows: &[(Class, i64)],
    ) -> Result<Waiting, PruneErrorKind> {
        let connection = self.database.connection();
        let mut statement = connection.prepare_cached(
            "SELECT id, octet_length(data) FROM event WHERE rowid = ?1 AND aggregate_id = ?2",
        )?;
        let mut waiting = Waiting { place, rows: Vec::with_capacity(rows.len()), done: 0 };
        for (class, rowid) in rows {
            let found: Option<(String, i64)> = statement
                .query_row((rowid, waiting.place.session.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((id, bytes)) = found else {
                pass.report.rows_left.entry(*class).or_default().gone += 1;
                continue;
            };
            let bytes = u64::try_from(bytes).unwrap_or(0);
            // It keeps the lock for more than half a second even from memory.
            if bytes > ROW_BYTES_MAX {
                Self::keep_session(pass, &waiting.place.session, KeptReason::OversizedRow);
                continue;
            }
            if bytes > WARM_BYTES {
                warm(connection, "event", *rowid)?;
            }
            waiting.rows.push(EventRow { class: *class, rowid: *rowid, id, bytes });
        }
        Ok(waiting)
    }

    fn flush(&mut self, pass: &mut Pass<'_>, queue: &mut Queue) -> Result<(), Halt> {
        let mut waiting = std::mem::take(queue).sessions;
        for session in &waiting {
            self.archive_events(session)?;
        }
        let mut first = 0;
        while let Some(session) = waiting.get(first) {
            if session.done >= session.rows.len() {
                first += 1;
                continue;
            }
            if self.observer.is_cancelled() {
                return Err(Halt::Cancelled);
            }
            self.delete_some(pass, &mut waiting[first..])?;
        }
        Ok(())
    }

    fn archive_events(&mut self, session: &Waiting) -> Result<(), Halt> {
        let Some(archive) = self.archive.as_deref_mut() else { return Ok(()) };
        let connection = self.database.connection();
        let mut rows = session.rows.as_slice();
        while let Some(first) = rows.first() {
            let mut bytes = 0;
            let fits = |row: &&EventRow| {
                bytes += row.bytes;
                row.class == first.class && bytes <= FRAME_BYTES
            };
            let count = rows.iter().take_while(fits).count().max(1);
            let unit =
                Unit { class: first.class, place: session.place.clone(), message: None, receipt: None };
            archive.append(&unit, |frame| {
                rows[..count]
                    .iter()
                    .try_for_each(|row| frame.deleted(connection, "event", row.rowid).map(drop))
            })?;
            rows = &rows[count..];
        }
        Ok(())
    }

    /// One transaction over as many of the waiting rows as fit into it.
    fn delete_some(&mut self, pass: &mut Pass<'_>, waiting: &mut [Waiting]) -> Result<(), Halt> {
        self.locks.prepare()?;
        let mut asked: Vec<Result<Asked, KeptReason>> = Vec::new();
        for session in waiting.iter().take(ASKED_SESSIONS) {
            // The first answer must still count when the lock is had.
            if asked.iter().flatten().next().is_some_and(|first| !first.leaves_time()) {
                break;
            }
            asked.push(self.fence.ask(&session.place));
        }
        self.observer.reached(Step::Asked.name());
        let fence = &mut self.fence;
        let outcome = self.locks.run(|held| {
            let mut outcome = Vec::new();
            for (session, asked) in waiting.iter().zip(&asked) {
                let (done, is_due) = match asked {
                    Err(reason) => (Outcome::refused(Refusal::Kept(*reason)), false),
                    Ok(asked) => delete_session(fence, held, session, *asked)?,
                };
                outcome.push(done);
                if is_due {
                    break;
                }
            }
            Ok::<_, PruneErrorKind>(lock::Step::Commit(outcome))
        })?;
        self.observer.reached(Step::Committed.name());
        let is_stale = outcome.iter().any(|done| done.refused == Some(Refusal::AskedTooLongAgo));
        for (session, done) in waiting.iter_mut().zip(&outcome) {
            account(pass, session, done)?;
        }
        self.patience(is_stale)
    }
}

/// What one transaction did for one session.
struct Outcome {
    refused: Option<Refusal>,
    /// For each row that it came to, whether it was deleted.
    deleted: Vec<bool>,
}

impl Outcome {
    fn refused(refusal: Refusal) -> Self {
        Self { refused: Some(refusal), deleted: Vec::new() }
    }
}

/// Deletes rows of one session until the transaction is due.
///
/// That a newer copy or the rows of the session are there was seen moments ago by reading them. Event rows are never changed and are
/// deleted only with their counter (fact A4) or by a prune, which leaves the newest copies; so the counter, which is checked here,
/// tells that it is still so.
fn delete_session(
    fence: &mut crate::fence::Fence<'_>,
    held: &Held<'_>,
    session: &Waiting,
    asked: Asked,
) -> rusqlite::Result<(Outcome, bool)> {
    if let Err(refusal) = fence.check(held, &session.place, asked, Subject::Events)? {
        return Ok((Outcome::refused(refusal), false));
    }
    let connection = held.connection();
    let has_counter = connection
        .prepare_cached("SELECT 1 FROM event_sequence WHERE aggregate_id = ?1 AND owner_id IS NULL")?
        .exists([session.place.session.as_str()])?;
    if !has_counter {
        return Ok((Outcome::refused(Refusal::Kept(KeptReason::Changed)), false));
    }
    let mut delete = connection.prepare_cached("DELETE FROM event WHERE rowid = ?1 AND id = ?2")?;
    let mut deleted = Vec::new();
    for row in session.rows.iter().skip(session.done) {
        deleted.push(delete.execute((row.rowid, &row.id))? == 1);
        if held.is_due() {
            return Ok((Outcome { refused: None, deleted }, true));
        }
    }
    Ok((Outcome { refused: None, deleted }, false))
}

fn account(pass: &mut Pass<'_>, session: &mut Waiting, outcome: &Outcome) -> Result<(), Halt> {
    for (row, is_deleted) in session.rows.iter().skip(session.done).zip(&outcome.deleted) {
        if *is_deleted {
            let done = pass.report.class(row.class);
            done.rows_dropped += 1;
            done.bytes += ByteCount::new(row.bytes);
        } else {
            pass.report.rows_left.entry(row.class).or_default().gone += 1;
        }
    }
    session.done += outcome.deleted.len();
    let Some(refusal) = &outcome.refused else { return Ok(()) };
    // The rows stay in the queue, and everything is asked again.
    if *refusal == Refusal::AskedTooLongAgo {
        return Ok(());
    }
    let reason = of_session(*refusal).map_err(Halt::Blocked)?;
    for row in session.rows.iter().skip(session.done) {
        pass.report.rows_left.entry(row.class).or_default().changed += 1;
    }
    session.done = session.rows.len();
    Pruner::keep_session(pass, &session.place.session, reason);
    Ok(())
}

/// Reads a row through once so that its pages are in memory.
pub(super) fn warm(connection: &Connection, table: &'static str, rowid: i64) -> rusqlite::Result<()> {
    let blob = connection.blob_open("main", table, "data", rowid, true)?;
    let mut piece = vec![0; 256 * 1024];
    let mut at = 0;
    while at < blob.len() {
        let read = blob.read_at(&mut piece, at)?;
        if read == 0 {
            break;
        }
        at += read;
    }
    Ok(())
}
