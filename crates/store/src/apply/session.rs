//! Sessions.

use headwater_model::SessionId;
use headwater_model::conversation::SessionRecord;

use crate::apply::Failure;
use crate::{NewSession, Rows, WriteErrorKind};

/// Adds a session to a task; where it is there already, answers with it.
///
/// # Errors
/// [`WriteErrorKind::DuplicateSession`] where the id belongs to a session of another task, [`WriteErrorKind::UnknownTask`].
pub async fn create_session<R: Rows>(
    rows: &mut R,
    new: &NewSession,
) -> Result<SessionRecord, Failure<R::Error>> {
    if let Some(stored) = rows.session(new.id.as_str()).await? {
        let same = stored.task_id == new.task.as_str();
        return if same { Ok(stored) } else { Err(Failure::Refused(WriteErrorKind::DuplicateSession)) };
    }
    if !rows.has_task(new.task.as_str()).await? {
        return Err(Failure::Refused(WriteErrorKind::UnknownTask));
    }
    let at = new.at.cut_to_micros();
    let record = SessionRecord {
        id: new.id.to_string(),
        task_id: new.task.to_string(),
        name: new.name.clone(),
        state: "CREATED".to_owned(),
        started_at: at,
        completed_at: None,
        updated_at: at,
    };
    Ok(rows.insert_session(&record).await?)
}

/// Removes a session with its turns, messages and revision.
///
/// # Errors
/// [`WriteErrorKind::UnknownSession`].
pub async fn delete_session<R: Rows>(rows: &mut R, session: &SessionId) -> Result<(), Failure<R::Error>> {
    let removed = rows.delete_session(session.as_str()).await?;
    if removed { Ok(()) } else { Err(Failure::Refused(WriteErrorKind::UnknownSession)) }
}
