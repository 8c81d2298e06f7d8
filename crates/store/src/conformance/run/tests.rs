use async_trait::async_trait;
use headwater_model::TaskId;
use proptest::prelude::*;

use super::*;
use crate::conformance::steps;

struct InMemory(Model);

#[async_trait]
impl Fixture for InMemory {
    type Store = Model;

    fn store(&self) -> &Model {
        &self.0
    }

    async fn create_task(&self, task: &TaskId) {
        self.0.create_task(task);
    }

    async fn delete_task(&self, task: &TaskId) {
        self.0.delete_task(task);
    }
}

proptest! {
    #[test]
    fn the_model_conforms_to_itself(steps in steps(0..40)) {
        let ran = futures_executor::block_on(run(&InMemory(Model::new(LIMIT)), &steps));
        prop_assert_eq!(ran, Ok(()));
    }
}
