//! The suite that every backend runs, and the naive model it is compared with.
//!
//! A backend offers a [`Fixture`]: a store with nothing in it but tasks, and a way past it into the tables. [`run`] drives random sequences of batches
//! into the backend and into [`Model`] and compares after every step: what was refused, the rows, whether the revision moved, the
//! receipt, the pages. [`laws`] holds what is not random.

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

/// A store under test.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// What is tested.
    type Store: ConversationSource + ConversationWriter;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Adds a task, as the agent host does.
    async fn create_task(&self, task: &TaskId);

    /// Removes a task, as the agent host does.
    async fn delete_task(&self, task: &TaskId);
}
