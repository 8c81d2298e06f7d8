//! Taking in rows as they were stored elsewhere.

use std::collections::BTreeSet;

use headwater_model::SessionId;

use crate::apply::recorder::Recorder;
use crate::apply::{Failure, MutationFailure, OrRefuse};
use crate::transfer::{Imported, StoredRow, Table, Value};
use crate::{BadMutation, RawRows, RefusedRow, rules};

/// Adds `batch` inside the transaction of `rows`: what is there already, the same, is left alone. What it did to turns and messages is in
/// the receipts, which are complete where the batch has at most 256 of them.
///
/// # Errors
/// [`Failure`]; part of the batch may be written then. [`BadMutation::DuplicateId`] where the row is there and says something else.
pub async fn import<R: RawRows>(rows: &mut R, batch: &[StoredRow]) -> Result<Imported, Failure<R::Error>> {
    let mut imported = Imported::default();
    let is_history = |row: &StoredRow| matches!(row.table, Table::Turns | Table::Messages);
    for (index, row) in batch.iter().enumerate().filter(|(_, row)| !is_history(row)) {
        let added = add(rows, row).await.map_err(|failure| failure.at(index))?;
        imported.count(added);
    }
    let mut sessions = BTreeSet::new();
    for (index, row) in batch.iter().enumerate().filter(|(_, row)| is_history(row)) {
        let named = row.session().and_then(|session| SessionId::new(session).ok());
        sessions.insert(named.ok_or_else(|| refused(BadMutation::NotStorable).at(index))?);
    }
    let mut recorder = Recorder::begin(rows, sessions).await?;
    for (index, row) in batch.iter().enumerate().filter(|(_, row)| is_history(row)) {
        let added = add_history(rows, row, &mut recorder).await.map_err(|failure| failure.at(index))?;
        imported.count(added);
    }
    imported.receipts = recorder.finish(rows).await?;
    Ok(imported)
}

impl Imported {
    fn count(&mut self, is_added: bool) {
        *(if is_added { &mut self.added } else { &mut self.present }) += 1;
    }
}

fn refused<E>(reason: BadMutation) -> MutationFailure<E> {
    MutationFailure::Refused(reason)
}

/// Adds a row. Answers whether it was not there.
async fn add<R: RawRows>(rows: &mut R, row: &StoredRow) -> Result<bool, MutationFailure<R::Error>> {
    let row = R::kept(row).or_refuse()?;
    let key = row.key().ok_or_else(|| refused(BadMutation::NotStorable))?;
    let Some(stored) = rows.stored(row.table, key).await? else {
        let inserted = rows.insert(&row).await?;
        return inserted.map(|()| true).map_err(|RefusedRow| refused(BadMutation::RefusedByDatabase));
    };
    match (row.table, stored.value("last_seq"), row.value("last_seq")) {
        // Numbers are not used again (C6): the higher one counts.
        (Table::PromptSeq, Value::Integer(stored), Value::Integer(wanted)) if stored < wanted => {
            rows.raise_prompt_seq(key, *wanted).await?;
            Ok(true)
        }
        (Table::PromptSeq, Value::Integer(_), Value::Integer(_)) => Ok(false),
        _ if stored.agrees_with(&row) => Ok(false),
        _ => Err(refused(BadMutation::DuplicateId)),
    }
}

/// Adds a turn or a message, and describes it.
async fn add_history<R: RawRows>(
    rows: &mut R,
    row: &StoredRow,
    recorder: &mut Recorder,
) -> Result<bool, MutationFailure<R::Error>> {
    let hidden = match (row.table, row.text("turn_id")) {
        (Table::Messages, Some(turn)) => match rows.turn(turn).await? {
            Some(turn) if rules::is_reserved(&turn.metadata) && !rows.is_named(&turn.id).await? => Some(turn),
            _ => None,
        },
        _ => None,
    };
    if !add(rows, row).await? {
        return Ok(false);
    }
    let (session, key) = (row.session().unwrap_or_default(), row.key().unwrap_or_default());
    recorder.steps(session, 1);
    if row.table == Table::Messages {
        if let Some(record) = rows.message(key).await? {
            recorder.message(record, None);
        }
        if let Some(turn) = hidden {
            recorder.turn(turn, None);
        }
    } else if let Some(record) = rows.turn(key).await?
        && (!rules::is_reserved(&record.metadata) || rows.is_named(key).await?)
    {
        recorder.turn(record, None);
    }
    Ok(true)
}
