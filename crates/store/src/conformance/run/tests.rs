use async_trait::async_trait;
use headwater_model::TaskId;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::conformance::{LoggedStep, OtherProgram, steps};

struct InMemory(Model);

#[async_trait]
impl Fixture for InMemory {
    type Store = Model;

    fn store(&self) -> &Model {
        &self.0
    }

    async fn execute(&self, _: &str) -> u64 {
        unreachable!("the model has no tables")
    }

    async fn count(&self, _: &str) -> i64 {
        unreachable!("the model has no tables")
    }

    async fn log_steps(&self) {
        unreachable!("the model has no tables")
    }

    async fn steps(&self) -> Vec<LoggedStep> {
        unreachable!("the model has no tables")
    }

    async fn connect(&self) -> Box<dyn OtherProgram> {
        unreachable!("the model has no connections")
    }

    async fn create_task(&self, task: &TaskId) {
        self.0.create_task(task);
    }

    async fn delete_task(&self, task: &TaskId) {
        self.0.delete_task(task);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_model_conforms_to_itself(steps in steps(0..40)) {
        let ran = futures_executor::block_on(run(&InMemory(Model::new(LIMIT)), &steps));
        prop_assert_eq!(ran, Ok(()));
    }
}

/// Sequences in which everything is refused would prove nothing.
#[test]
fn most_of_what_is_generated_is_accepted() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut accepted, mut refused) = (0_u32, 0_u32);
    for _ in 0..50 {
        let generated = steps(40..41).new_tree(&mut runner).unwrap().current();
        let fixture = InMemory(Model::new(LIMIT));
        let pair = Pair { fixture: &fixture, model: Model::new(LIMIT) };
        for step in &generated {
            let batch = match step {
                Step::Apply(batch) => batch.clone(),
                Step::ApplyAtEnd(batch) => fixture.0.at_end(batch),
                Step::CreateTask(_)
                | Step::DeleteTask(_)
                | Step::CreateSession(_)
                | Step::DeleteSession(_) => {
                    drop(futures_executor::block_on(pair.step(step)));
                    continue;
                }
            };
            match futures_executor::block_on(fixture.0.apply(batch)) {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted * 3 > refused, "{accepted} accepted, {refused} refused");
    assert!(refused * 3 > accepted, "{accepted} accepted, {refused} refused");
}
