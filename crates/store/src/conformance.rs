//! The suite that every backend runs, and the naive model it is compared with.
//!
//! A backend offers a [`Fixture`]: an empty store, and a way past it into the tables. [`run`] drives random sequences of batches into
//! the backend and into [`Model`] and compares after every step: what was refused, the rows, whether the revision moved, the receipt; and
//! all pages in the end. [`laws`] holds what is not random. Both panic or answer with what differs; they are for tests alone.

mod generate;
pub mod laws;
mod model;
mod run;
mod said;
mod seed;
mod view;

use async_trait::async_trait;
use headwater_model::TaskId;

use crate::{ConversationSource, ConversationWriter};

pub use generate::{Step, steps};
pub use model::Model;
pub use run::run;
pub use said::whole;
pub use seed::Choices;

/// A store under test. Its content limit is 12 bytes.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// What is tested.
    type Store: ConversationSource + ConversationWriter;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Executes statements that both databases understand, on a connection of its own, as another program would. Answers with how many
    /// rows the last of them changed.
    async fn execute(&self, sql: &str) -> u64;

    /// The number that a query answers with.
    async fn count(&self, sql: &str) -> i64;

    /// Has every step of a revision logged, with who made it, from now on.
    async fn log_steps(&self);

    /// The steps that were committed since, in the order in which they were made.
    async fn steps(&self) -> Vec<LoggedStep>;

    /// A connection of another program.
    async fn connect(&self) -> Box<dyn OtherProgram>;

    /// Adds a task, as the agent host does.
    async fn create_task(&self, task: &TaskId) {
        let now = "'2026-01-01 00:00:00'";
        let sql = "INSERT INTO tasks (id, title, created_at, updated_at)";
        self.execute(&format!("{sql} VALUES ('{task}', '', {now}, {now}) ON CONFLICT (id) DO NOTHING")).await;
    }

    /// Removes a task, as the agent host does.
    async fn delete_task(&self, task: &TaskId) {
        self.execute(&format!("DELETE FROM tasks WHERE id = '{task}'")).await;
    }
}

/// A program that writes past the store.
#[async_trait]
pub trait OtherProgram: Send {
    /// Executes one statement in a transaction of its own.
    ///
    /// # Errors
    /// Where the database had it give way to another transaction: nothing happened.
    async fn execute(&mut self, sql: &str) -> Result<(), GaveWay>;
}

/// A statement was chosen to give way to another program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveWay;

/// A step of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedStep {
    /// Whose.
    pub session: String,
    /// Where it was before.
    pub base: i64,
    /// Where it is since.
    pub revision: i64,
    /// Whether the store made it; else another program did.
    pub by_store: bool,
}
