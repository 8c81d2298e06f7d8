//! Class technical in bulk: per message, each with its own revision and receipt, sixteen candidates per batch (P13).

use std::collections::BTreeMap;

use headwater_model::{MessageId, SessionId};
use headwater_prune::{Class, KeptReason, Layout};
use rusqlite::OptionalExtension;

use super::answer::{Answer, Why};
use super::batch::Answered;
use super::bulk::{Halt, Pass};
use super::prepare::{Planned, Wanted};
use super::pruner::Pruner;
use super::work::Work;
use crate::fence::SessionPlace;
use crate::plan::{Kept, RowIds};

/// Candidate messages per batch (P13): their intents are written together, and a cancel waits for one batch at most.
const BATCH_MESSAGES: usize = 16;

impl Pruner<'_> {
    pub(super) fn technical(
        &mut self,
        pass: &mut Pass<'_>,
        session: &SessionId,
        work: &Work,
    ) -> Result<(), Halt> {
        if !work.parts.is_empty()
            && let Some(place) = self.place(session, "part")?
        {
            let messages = self.messages_of_parts(&work.parts)?;
            self.messages(pass, &place, messages)?;
        }
        if !work.rows.is_empty()
            && let Some(place) = self.place(session, "session_message")?
        {
            let messages = self.messages_of_rows(&work.rows)?;
            self.messages(pass, &place, messages)?;
        }
        Ok(())
    }

    fn messages(
        &mut self,
        pass: &mut Pass<'_>,
        place: &SessionPlace,
        messages: Vec<(MessageId, RowIds)>,
    ) -> Result<(), Halt> {
        let as_of = pass.selection.now.get();
        let planned: Vec<Planned<'_>> =
            messages.into_iter().map(|(message, parts)| Planned { place, message, parts, as_of }).collect();
        for batch in planned.chunks(BATCH_MESSAGES) {
            if self.observer.is_cancelled() {
                return Err(Halt::Cancelled);
            }
            let wanted: Vec<Wanted<'_>> = batch.iter().map(Wanted::Planned).collect();
            let answers = self.batch(&wanted)?;
            for (planned, answered) in batch.iter().zip(answers) {
                account(pass, planned, &answered)?;
            }
        }
        Ok(())
    }

    /// The parts that go, by message, in the order in which the messages are met.
    fn messages_of_parts(&self, parts: &[i64]) -> rusqlite::Result<Vec<(MessageId, RowIds)>> {
        let mut statement =
            self.database.connection().prepare_cached("SELECT message_id FROM part WHERE rowid = ?1")?;
        let mut by_message: BTreeMap<String, RowIds> = BTreeMap::new();
        for rowid in parts {
            let found: Option<String> = statement.query_row([rowid], |row| row.get(0)).optional()?;
            if let Some(message) = found {
                by_message.entry(message).or_default().insert(rowid.cast_unsigned());
            }
        }
        Ok(by_message.into_iter().filter_map(|(id, rows)| Some((MessageId::new(id).ok()?, rows))).collect())
    }

    fn messages_of_rows(&self, rows: &[i64]) -> rusqlite::Result<Vec<(MessageId, RowIds)>> {
        let mut statement =
            self.database.connection().prepare_cached("SELECT id FROM session_message WHERE rowid = ?1")?;
        let mut messages = Vec::new();
        for rowid in rows {
            let found: Option<String> = statement.query_row([rowid], |row| row.get(0)).optional()?;
            messages.extend(found.and_then(|id| MessageId::new(id).ok()).map(|id| (id, RowIds::new())));
        }
        Ok(messages)
    }
}

fn account(pass: &mut Pass<'_>, planned: &Planned<'_>, answered: &Answered) -> Result<(), Halt> {
    let left = pass.report.rows_left.entry(Class::Technical).or_default();
    left.changed += answered.skipped.changed;
    left.gone += answered.skipped.gone;
    if *left == super::report::RowsLeft::default() {
        pass.report.rows_left.remove(&Class::Technical);
    }
    let mut keep = |reason| {
        let message = Some(planned.message.as_str().to_owned());
        pass.report.keep(pass.plan, Kept { session: planned.place.session.clone(), message, reason });
    };
    if answered.skipped.changed > 0 {
        keep(KeptReason::Changed);
    }
    if answered.skipped.gone > 0 {
        keep(KeptReason::Gone);
    }
    match &answered.answer {
        Answer::Pruned(receipt) if answered.is_fresh => {
            let done = pass.report.class(Class::Technical);
            done.messages += 1;
            done.bytes += receipt.bytes;
            match receipt.layout {
                Layout::V1 => done.rows_dropped += u64::from(receipt.removed.total()),
                Layout::V2 => done.rows_rewritten += 1,
            }
        }
        Answer::Pruned(_) => {}
        Answer::Blocked(blocked) => match blocked.why {
            Why::Kept(reason) => keep(reason),
            Why::Moved | Why::NoSuchItem => keep(KeptReason::Changed),
            why @ (Why::Unsupported(_)
            | Why::Busy
            | Why::AskedTooLongAgo
            | Why::OtherPrune
            | Why::LogPinned) => {
                return Err(Halt::Blocked(why));
            }
        },
    }
    Ok(())
}
