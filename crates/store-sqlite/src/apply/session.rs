//! Sessions.

use headwater_model::SessionId;
use headwater_model::conversation::SessionRecord;
use headwater_store::{NewSession, WriteErrorKind};
use rusqlite::Connection;

use crate::failure::Failure;
use crate::rows;

/// Adds a session to a task.
pub(super) fn create(db: &Connection, new: &NewSession) -> Result<SessionRecord, Failure> {
    let stored = find(db, new.id.as_str())?;
    if let Some(stored) = stored {
        let same = stored.task_id == new.task.as_str();
        return if same { Ok(stored) } else { Err(WriteErrorKind::DuplicateSession.into()) };
    }
    let has_task = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1)";
    if !db.prepare_cached(has_task)?.query_row([new.task.as_str()], |row| row.get::<_, bool>(0))? {
        return Err(WriteErrorKind::UnknownTask.into());
    }
    let at = new.at.cut_to_micros().stored_text();
    db.prepare_cached(
        "INSERT INTO task_sessions (id, task_id, name, state, started_at, updated_at) VALUES (?1, ?2, ?3, 'CREATED', ?4, ?4)",
    )?
    .execute((new.id.as_str(), new.task.as_str(), &new.name, &at))?;
    find(db, new.id.as_str())?.ok_or(Failure::Sqlite(rusqlite::Error::QueryReturnedNoRows))
}

/// Removes a session; foreign keys take its turns, messages and revision.
pub(super) fn delete(db: &Connection, session: &SessionId) -> Result<(), Failure> {
    let removed =
        db.prepare_cached("DELETE FROM task_sessions WHERE id = ?1")?.execute([session.as_str()])?;
    if removed == 0 { Err(WriteErrorKind::UnknownSession.into()) } else { Ok(()) }
}

fn find(db: &Connection, id: &str) -> rusqlite::Result<Option<SessionRecord>> {
    let sql = format!("SELECT {} FROM task_sessions WHERE id = ?1", rows::SESSION_COLUMNS);
    db.prepare_cached(&sql)?.query_map([id], rows::session)?.next().transpose()
}
