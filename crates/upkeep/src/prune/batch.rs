//! A few messages, each in a transaction of its own (P13).

use headwater_prune::KeptReason;

use super::answer::{Answer, Blocked, PruneError, PruneErrorKind, Why};
use super::content::Content;
use super::prepare::{Preparation, Prepared, Skipped, Wanted};
use super::pruner::Pruner;
use super::receipts::{self, ReceiptHome};
use super::step::Step;
use crate::fence::{Refusal, Subject};
use crate::lock;
use crate::state::Resolution;

/// The answer for one message of a batch.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) skipped: Skipped,
    /// Whether this call removed it, and not an earlier one with the same request.
    pub(super) is_fresh: bool,
}

impl Pruner<'_> {
    /// Prunes each of `wanted`; answers stand in the same order. Where it fails in the middle, what is committed stays committed, and
    /// the next batch finds its receipts.
    pub(super) fn batch(&mut self, wanted: &[Wanted<'_>]) -> Result<Vec<Answered>, PruneError> {
        let mut needs_state = false;
        for wanted in wanted {
            needs_state |= self.needs_state(wanted)?;
        }
        let claim = if needs_state {
            let claim = self.state.claim(self.key, self.claim_wait)?;
            self.observer.reached(Step::Claimed.name());
            self.resolve_open_intents()?;
            self.observer.reached(Step::Resolved.name());
            Some(claim)
        } else {
            None
        };
        let mut preparations = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            preparations.push(self.prepare(wanted)?);
        }
        self.intend(&preparations)?;
        let outcome = self.commit_all(&preparations);
        drop(claim);
        outcome
    }

    fn intend(&mut self, preparations: &[Preparation]) -> Result<(), PruneError> {
        let mut intents = Vec::new();
        for prepared in preparations.iter().filter_map(in_state) {
            intents.push(prepared.intent()?);
        }
        if !intents.is_empty() {
            self.state.intend(self.key, &intents)?;
            self.observer.reached(Step::Intended.name());
        }
        Ok(())
    }

    /// Commits each message, then resolves the intents of all. A failure stops at its message, and so does a refusal that holds for the
    /// whole database, which is waited for once; the intents of the others are void.
    fn commit_all(&mut self, preparations: &[Preparation]) -> Result<Vec<Answered>, PruneError> {
        let mut answers = Vec::with_capacity(preparations.len());
        let mut resolutions = Vec::new();
        let mut failure = None;
        let mut refused: Option<Why> = None;
        for preparation in preparations {
            let mut has_failed = false;
            let answered = match preparation {
                Preparation::Answered { answer, skipped } => {
                    Answered { answer: answer.clone(), skipped: *skipped, is_fresh: false }
                }
                Preparation::Ready(prepared) => {
                    let outcome = refused
                        .map_or_else(|| self.commit(prepared), |why| Ok(Err(why.into())))
                        .unwrap_or_else(|error| {
                            has_failed = true;
                            failure = Some(error);
                            Err(Why::Busy.into())
                        });
                    if let Err(Blocked { why, .. }) = &outcome
                        && why.is_about_database()
                    {
                        refused = Some(*why);
                    }
                    answered(prepared, outcome)
                }
            };
            // After a failure the stored rows tell what became of the message; the next holder of the claim asks them.
            if let Some(prepared) = in_state(preparation)
                && !has_failed
            {
                let resolution = if answered.is_fresh { Resolution::Done } else { Resolution::Void };
                resolutions.push((prepared.receipt.key.to_string(), resolution));
            }
            answers.push(answered);
        }
        let recorded = self.ensure_durable(&answers).and_then(|()| self.record(&resolutions));
        if let Some(failure) = failure {
            return Err(failure);
        }
        recorded?;
        Ok(answers)
    }

    /// Nobody is told of a prune, and no receipt of one is resolved, before it is on disk: a receipt must not outlive its change. An answer
    /// from an earlier receipt counts too, since the process that committed it may have ended before it waited for the disk.
    fn ensure_durable(&self, answers: &[Answered]) -> Result<(), PruneError> {
        if answers.iter().any(|answered| matches!(answered.answer, Answer::Pruned(_))) {
            self.locks.make_durable()?;
            self.observer.reached(Step::Durable.name());
        }
        Ok(())
    }

    fn record(&mut self, resolutions: &[(String, Resolution)]) -> Result<(), PruneError> {
        if resolutions.is_empty() {
            return Ok(());
        }
        self.state
            .resolve(self.key, resolutions.iter().map(|(key, resolution)| (key.as_str(), *resolution)))?;
        self.observer.reached(Step::Recorded.name());
        Ok(())
    }

    /// One message under the lock: the receipt, or why nothing was changed.
    fn commit(&mut self, prepared: &Prepared) -> Result<Result<Committed, Blocked>, PruneError> {
        loop {
            if let Err(error) = self.locks.prepare().map_err(PruneError::from) {
                return error.kind.blocked().map_or(Err(error), |why| Ok(Err(why.into())));
            }
            let asked = match self.fence.ask(&prepared.place) {
                Ok(asked) => asked,
                Err(reason) => return Ok(Err(reason.into())),
            };
            self.observer.reached(Step::Asked.name());
            let (fence, observer) = (&mut self.fence, self.observer);
            let ran = self.locks.run(|held| {
                observer.reached(Step::Locked.name());
                let connection = held.connection();
                if let Err(refusal) = fence.check(held, &prepared.place, asked, Subject::Content)? {
                    return Ok(lock::Step::Rollback(Err(refusal)));
                }
                let outcome = edit(connection, prepared, observer)?;
                Ok::<_, PruneError>(match outcome {
                    Ok(Committed::Fresh) => lock::Step::Commit(Ok(Ok(Committed::Fresh))),
                    other => lock::Step::Rollback(Ok(other)),
                })
            });
            let outcome = match ran {
                Ok(outcome) => outcome,
                // The transaction has not begun, or not ended: nothing is committed.
                Err(error) => return error.kind.blocked().map_or(Err(error), |why| Ok(Err(why.into()))),
            };
            match outcome {
                Err(Refusal::AskedTooLongAgo) if self.patience.may_ask_again() => {}
                Err(refusal) => return Ok(Err(refusal.into())),
                Ok(outcome) => {
                    self.patience.restore();
                    if matches!(outcome, Ok(Committed::Fresh)) {
                        self.observer.reached(Step::Committed.name());
                    }
                    return Ok(outcome);
                }
            }
        }
    }
}

/// A message whose request is done.
#[derive(Debug)]
enum Committed {
    /// By this transaction.
    Fresh,
    /// By another one with the same request, which won the lock.
    Earlier(headwater_prune::PruneReceipt),
}

/// Under the lock, after the fence: reads the content again, compares, writes, puts the receipt.
fn edit(
    connection: &rusqlite::Connection,
    prepared: &Prepared,
    observer: &dyn crate::observer::Observer,
) -> Result<Result<Committed, Blocked>, PruneErrorKind> {
    let request = &prepared.request;
    let content = Content::read(connection, prepared.place.storage, &request.session, &request.message)?;
    let is_as_previewed = content.as_ref().is_ok_and(|content| content.revision == request.revision);
    if prepared.home == ReceiptHome::Kv
        && !is_as_previewed
        && let Some(receipt) = receipts::find(connection, prepared.receipt.key)?
    {
        return Ok(Ok(Committed::Earlier(receipt)));
    }
    let content = match content {
        Ok(content) if is_as_previewed => content,
        Ok(_) => return Ok(Err(KeptReason::Changed.into())),
        Err(reason) => return Ok(Err(reason.into())),
    };
    let edit = match content.without(request.indexes.as_slice()) {
        Ok(edit) => edit,
        Err(reason) => return Ok(Err(reason.into())),
    };
    observer.reached(Step::Checked.name());
    if edit.after != prepared.receipt.after || !edit.writes.apply(connection)? {
        return Ok(Err(KeptReason::Changed.into()));
    }
    if prepared.home == ReceiptHome::Kv {
        receipts::put(connection, &prepared.receipt)?;
    }
    observer.reached(Step::Edited.name());
    Ok(Ok(Committed::Fresh))
}

fn in_state(preparation: &Preparation) -> Option<&Prepared> {
    match preparation {
        Preparation::Ready(prepared) if prepared.home == ReceiptHome::State => Some(prepared),
        Preparation::Ready(_) | Preparation::Answered { .. } => None,
    }
}

fn answered(prepared: &Prepared, outcome: Result<Committed, Blocked>) -> Answered {
    let (answer, is_fresh) = match outcome {
        Ok(Committed::Fresh) => (Answer::Pruned(prepared.receipt.clone()), true),
        Ok(Committed::Earlier(receipt)) => (Answer::Pruned(receipt), false),
        Err(blocked) => (Answer::Blocked(blocked), false),
    };
    Answered { answer, skipped: prepared.skipped, is_fresh }
}
