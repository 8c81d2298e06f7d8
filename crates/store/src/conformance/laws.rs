//! What holds for every backend beyond random sequences. Each law wants a fixture with nothing in it, and panics where it is broken.

#![expect(clippy::expect_used, clippy::missing_panics_doc, reason = "laws are tests: they panic")]

mod concurrent;
mod coverage;
mod order;
mod past;
mod scene;

pub use concurrent::receipts_of_concurrent_writers_cover_every_step_once;
pub use coverage::every_step_has_one_receipt_or_another_author;
pub use order::{a_deleted_boundary_still_is_one, stored_times_order_alike, ties_stand_once_in_one_order};
pub use past::{
    a_batch_that_fails_leaves_nothing, a_clock_that_goes_back_keeps_receipts_in_order,
    a_repeated_batch_changes_nothing, a_session_is_gone_without_a_trace, a_workspace_is_gone_without_a_trace,
    changes_past_the_store_move_the_revision, long_descriptions_are_resets,
    numbers_of_prompts_are_never_used_twice, revisions_keep_every_digit,
};

/// Makes a test of each law, all but [`stored_times_order_alike`], which needs to know how a time is stored. `$fixture` is a future of a fixture with
/// nothing in it.
#[macro_export]
macro_rules! conformance_tests {
    ($fixture:expr) => {
        $crate::conformance_tests! { @each $fixture;
            a_batch_that_fails_leaves_nothing,
            a_clock_that_goes_back_keeps_receipts_in_order,
            a_deleted_boundary_still_is_one,
            a_repeated_batch_changes_nothing,
            a_session_is_gone_without_a_trace,
            a_workspace_is_gone_without_a_trace,
            changes_past_the_store_move_the_revision,
            every_step_has_one_receipt_or_another_author,
            long_descriptions_are_resets,
            numbers_of_prompts_are_never_used_twice,
            receipts_of_concurrent_writers_cover_every_step_once,
            revisions_keep_every_digit,
            ties_stand_once_in_one_order,
        }
    };
    (@each $fixture:expr; $($law:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                $crate::conformance::laws::$law(&$fixture.await).await;
            }
        )*
    };
}
