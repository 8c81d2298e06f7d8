//! The suite that every backend runs, and the naive model it is compared with.
//!
//! A backend offers a [`Fixture`]: an empty store, and a way past it into the tables. [`run`] drives random sequences of batches into
//! the backend and into [`Model`] and compares after every step: what was refused, the rows, whether the revision moved, the receipt; and
//! all pages in the end. [`laws`] holds what is not random. Both panic or answer with what differs; they are for tests alone.

mod generate;
pub mod laws;
mod model;
mod run;
mod view;

use async_trait::async_trait;
use headwater_model::TaskId;

use crate::{ConversationSource, ConversationWriter};

pub use generate::{Step, steps};
pub use model::Model;
pub use run::run;

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
