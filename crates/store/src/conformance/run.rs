//! One random sequence, driven into a backend and into the model.

use headwater_model::conversation::{MessageRecord, Selection, SessionRecord, TurnRecord};
use headwater_model::{ByteCount, Revision, SessionId};

use crate::conformance::view::View;
use crate::conformance::{Fixture, Model, Step};
use crate::{
    ContentLimit, ConversationSource, ConversationWriter, Page, PageLimit, PageQuery, ReadErrorKind, Sort,
};

#[cfg(test)]
mod tests;

/// The content limit that a fixture's store must have: small, so that sequences pass it.
pub(super) const LIMIT: ContentLimit = ContentLimit(ByteCount::new(12));

/// Drives `steps` into the fixture's store, which is empty and has a content limit of 12 bytes, and into a [`Model`], and compares them after each.
///
/// # Errors
/// What differs, and at which step.
pub async fn run<F: Fixture>(fixture: &F, steps: &[Step]) -> Result<(), String> {
    let pair = Pair { fixture, model: Model::new(LIMIT) };
    for (number, step) in steps.iter().enumerate() {
        pair.step(step).await.map_err(|what| format!("step {number}, {step:?}: {what}"))?;
    }
    pair.compare_pages().await
}

struct Pair<'a, F> {
    fixture: &'a F,
    model: Model,
}

impl<F: Fixture> Pair<'_, F> {
    async fn step(&self, step: &Step) -> Result<(), String> {
        let store = self.fixture.store();
        match step {
            Step::CreateTask(task) => {
                self.fixture.create_task(task).await;
                self.model.create_task(task);
            }
            Step::DeleteTask(task) => {
                self.fixture.delete_task(task).await;
                self.model.delete_task(task);
            }
            Step::CreateSession(new) => {
                let [ours, wanted] =
                    [store.create_session(new.clone()).await, self.model.create_session(new.clone()).await];
                same("the new session", &ours.map_err(text_of), &wanted.map_err(text_of))?;
            }
            Step::DeleteSession(session) => {
                let [ours, wanted] =
                    [store.delete_session(session).await, self.model.delete_session(session).await];
                same("the removal", &ours.map_err(text_of), &wanted.map_err(text_of))?;
            }
            Step::Apply(batch) => self.apply(batch).await?,
            Step::ApplyAtEnd(batch) => self.apply(&self.model.at_end(batch)).await?,
        }
        self.compare_rows().await
    }

    async fn apply(&self, batch: &crate::Batch) -> Result<(), String> {
        let store = self.fixture.store();
        let before = self.views(store).await?;
        let ours = store.apply(batch.clone()).await;
        let wanted = self.model.apply(batch.clone()).await;
        let (ours, wanted) = match (ours, wanted) {
            (Ok(ours), Ok(wanted)) => (ours, wanted),
            (Err(ours), Err(wanted)) => return same("the refusal", &text_of(ours), &text_of(wanted)),
            (Ok(_), Err(wanted)) => return Err(format!("written, the model says: {wanted}")),
            (Err(ours), Ok(_)) => return Err(format!("refused: {ours}")),
        };
        let sessions = |written: &crate::Written| {
            written.receipts.iter().map(|receipt| receipt.session.clone()).collect::<Vec<_>>()
        };
        same("the sessions of the receipts", &sessions(&ours), &sessions(&wanted))?;
        for (receipt, model) in ours.receipts.iter().zip(&wanted.receipts) {
            let session = &receipt.session;
            same("whether the revision moved", &receipt.is_step(), &model.is_step())?;
            let (base, mut view) = before
                .iter()
                .find(|(id, ..)| id == session)
                .map(|(_, base, view)| (*base, view.clone()))
                .ok_or("an unknown session has a receipt")?;
            same("the base revision", &receipt.base, &base)?;
            same(
                "the final revision",
                &Some(receipt.revision),
                &store.revision(session).await.map_err(text_of)?,
            )?;
            let operations = receipt.operations().ok_or("a reset where everything was known")?;
            if !receipt.is_step() && !operations.is_empty() {
                return Err("operations without a step".to_owned());
            }
            operations.iter().try_for_each(|operation| view.apply(operation))?;
            same("the view after the operations", &view, &self.view(store, session).await?.1)?;
        }
        Ok(())
    }

    async fn compare_rows(&self) -> Result<(), String> {
        let [ours, wanted] = [self.views(self.fixture.store()).await?, self.views(&self.model).await?];
        // Revisions are compared by whether they move.
        let rows = |views: Vec<(SessionId, Revision, View)>| -> Vec<(SessionId, View)> {
            views.into_iter().map(|(session, _, view)| (session, view)).collect()
        };
        same("the rows", &rows(ours), &rows(wanted))
    }

    async fn compare_pages(&self) -> Result<(), String> {
        let store = self.fixture.store();
        let sessions = |sessions: Result<Vec<SessionRecord>, _>| sessions.map_err(text_of);
        let ours = sessions(store.sessions(None, PageLimit::MAX).await)?;
        same("the sessions", &ours, &sessions(self.model.sessions(None, PageLimit::MAX).await)?)?;
        for session in ours {
            let session = SessionId::new(session.id).map_err(|error| error.to_string())?;
            let [ours, wanted] =
                [self.pages(store, &session).await?, self.pages(&self.model, &session).await?];
            same("the pages", &ours, &wanted)?;
        }
        Ok(())
    }

    async fn views<S: ConversationSource>(
        &self,
        source: &S,
    ) -> Result<Vec<(SessionId, Revision, View)>, String> {
        let mut views = Vec::new();
        for session in source.sessions(None, PageLimit::MAX).await.map_err(text_of)? {
            let session = SessionId::new(session.id).map_err(|error| error.to_string())?;
            let (revision, view) = self.view(source, &session).await?;
            views.push((session, revision, view));
        }
        Ok(views)
    }

    async fn view<S: ConversationSource>(
        &self,
        source: &S,
        session: &SessionId,
    ) -> Result<(Revision, View), String> {
        let query = PageQuery { limit: PageLimit::MAX, ..PageQuery::of(session.clone()) };
        let messages = source.messages(&query).await.map_err(text_of)?;
        let turns = source.turns(&query).await.map_err(text_of)?;
        same("the revisions of both pages", &messages.revision, &turns.revision)?;
        Ok((messages.revision, View::new(messages.records, turns.records)))
    }

    /// Every page of several selections, both ways, two records at a time.
    async fn pages<S: ConversationSource>(&self, source: &S, session: &SessionId) -> Result<Pages, String> {
        let mut pages = Pages::default();
        let prompts =
            Selection { authors: Some([headwater_model::conversation::Author::User].into()), task: None };
        for selection in [Selection::default(), prompts] {
            for sort in [Sort::Asc, Sort::Desc] {
                let limit = PageLimit::new(2).map_err(|error| error.to_string())?;
                let query =
                    PageQuery { selection: selection.clone(), sort, limit, ..PageQuery::of(session.clone()) };
                let mut at = query.clone();
                loop {
                    let Page { records, has_more, revision } = source.messages(&at).await.map_err(text_of)?;
                    at.after = records.last().map(MessageRecord::order_key);
                    at.expected = Some(revision);
                    pages.messages.push((has_more, records));
                    if !has_more {
                        break;
                    }
                }
                let mut at = query;
                loop {
                    let Page { records, has_more, revision } = source.turns(&at).await.map_err(text_of)?;
                    at.after = records.last().map(TurnRecord::order_key);
                    at.expected = Some(revision);
                    pages.turns.push((has_more, records));
                    if !has_more {
                        break;
                    }
                }
            }
        }
        let revision = source.revision(session).await.map_err(text_of)?.ok_or("no revision")?;
        let moved = PageQuery { expected: revision.after(1), ..PageQuery::of(session.clone()) };
        match source.messages(&moved).await.map_err(|error| error.0) {
            Err(ReadErrorKind::RevisionMoved { current }) if current == revision => Ok(pages),
            other => Err(format!("another expected revision was answered with {other:?}")),
        }
    }
}

/// What pages of a session hold.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pages {
    messages: Vec<(bool, Vec<MessageRecord>)>,
    turns: Vec<(bool, Vec<TurnRecord>)>,
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, wanted: &T) -> Result<(), String> {
    if ours == wanted { Ok(()) } else { Err(format!("{what}: {ours:?}, the model says {wanted:?}")) }
}

fn text_of(error: impl std::error::Error) -> String {
    error.to_string()
}
