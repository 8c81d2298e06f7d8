//! The thread that writes.

use std::thread::{self, JoinHandle};

use headwater_store::apply::Failure;
use headwater_store::{ContentLimit, WriteError, WriteErrorKind};
use rusqlite::{Connection, Error, ErrorCode, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::failure::write_error;
use crate::work::{Done, Work, perform};

/// Requests that wait; more make their callers wait.
const QUEUE: usize = 1024;

/// Most requests of one transaction: enough to share the cost of a commit, few enough to keep an answer from waiting long.
const GROUP: usize = 128;

type Reply = oneshot::Sender<Result<Done, WriteError>>;

/// The way to the thread, which ends with this.
#[derive(Debug)]
pub(crate) struct Writer {
    requests: mpsc::Sender<(Work, Reply)>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Gives `db` to a thread of its own.
    pub(crate) fn start(db: Connection, limit: ContentLimit) -> std::io::Result<Self> {
        let (requests, waiting) = mpsc::channel(QUEUE);
        let thread = Thread { db, waiting, limit };
        let thread =
            thread::Builder::new().name("headwater-writer".to_owned()).spawn(move || thread.run())?;
        Ok(Self { requests, thread })
    }

    /// Ends the thread and waits for it. A panic of it is told by whoever waits for an answer.
    pub(crate) fn close(self) {
        drop(self.requests);
        drop(self.thread.join());
    }

    /// Has `work` done, and waits until it is committed.
    pub(crate) async fn write(&self, work: Work) -> Result<Done, WriteError> {
        let (reply, answer) = oneshot::channel();
        let ended = || WriteErrorKind::Storage("the writing thread has ended".into());
        self.requests.send((work, reply)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

struct Thread {
    db: Connection,
    waiting: mpsc::Receiver<(Work, Reply)>,
    limit: ContentLimit,
}

impl Thread {
    fn run(mut self) {
        while let Some(first) = self.waiting.blocking_recv() {
            let (mut group, mut replies) = (vec![first.0], vec![first.1]);
            // Those who were answered just now ask again: let them, and share a commit.
            thread::yield_now();
            while group.len() < GROUP {
                let Ok((work, reply)) = self.waiting.try_recv() else { break };
                group.push(work);
                replies.push(reply);
            }
            for (reply, answer) in replies.into_iter().zip(self.write(&group)) {
                // Whoever asked may be gone; what is written stays.
                drop(reply.send(answer));
            }
        }
    }

    /// Does a group in one transaction. Where that fails as a whole, each request gets a transaction of its own, so that none takes others
    /// with it. Not where another program holds the lock: each would wait for it as long as the group has.
    fn write(&mut self, group: &[Work]) -> Vec<Result<Done, WriteError>> {
        match self.transact(group) {
            Ok(answers) => answers,
            Err(Undone::Refused(error)) if group.len() == 1 => vec![Err(error)],
            Err(Undone::Failed(error)) if group.len() == 1 => vec![Err(write_error(error))],
            Err(Undone::Failed(Error::SqliteFailure(code, message)))
                if code.code == ErrorCode::DatabaseBusy =>
            {
                let busy = || write_error(Error::SqliteFailure(code, message.clone()));
                group.iter().map(|_| Err(busy())).collect()
            }
            Err(_) => group.iter().flat_map(|work| self.write(std::slice::from_ref(work))).collect(),
        }
    }

    /// Nothing is written where this fails. A request that is refused before it wrote anything, as nearly all are, does not touch the others.
    fn transact(&mut self, group: &[Work]) -> Result<Vec<Result<Done, WriteError>>, Undone> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut answers = Vec::with_capacity(group.len());
        for work in group {
            let before = transaction.total_changes();
            answers.push(match perform(&transaction, work, self.limit) {
                Ok(done) => Ok(done),
                Err(Failure::Refused(kind)) if transaction.total_changes() == before => Err(kind.into()),
                Err(Failure::Refused(kind)) => return Err(Undone::Refused(kind.into())),
                Err(Failure::Database(error)) => return Err(Undone::Failed(error)),
            });
        }
        transaction.commit()?;
        Ok(answers)
    }
}

/// Why a transaction was rolled back.
enum Undone {
    /// A request was refused after it had written something.
    Refused(WriteError),
    /// The database answered with an error.
    Failed(Error),
}

impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use headwater_model::SessionId;

    use super::*;

    static WAITS: AtomicU32 = AtomicU32::new(0);

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test plays the other program")]
    fn a_group_waits_once_for_a_lock_that_is_not_had() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.db");
        let [db, other] = [(); 2].map(|()| Connection::open(&path).unwrap());
        other.execute_batch("CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
        let gives_up = |_| {
            WAITS.fetch_add(1, Ordering::Relaxed);
            false
        };
        db.busy_handler(Some(gives_up)).unwrap();
        let (_requests, waiting) = mpsc::channel(1);
        let mut thread = Thread { db, waiting, limit: ContentLimit::default() };
        let group: Vec<Work> =
            (0..5).map(|_| Work::DeleteSession(SessionId::try_from("ses_a".to_owned()).unwrap())).collect();
        let answers = thread.write(&group);
        assert_eq!(answers.len(), 5);
        for answer in answers {
            let WriteError(kind) = answer.unwrap_err();
            assert!(matches!(kind, WriteErrorKind::Busy(_)), "{kind}");
        }
        assert_eq!(WAITS.load(Ordering::Relaxed), 1);
    }
}
