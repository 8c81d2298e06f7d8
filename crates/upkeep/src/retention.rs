//! Keeping a database small by a policy: which session trees go, or which content of them, by their last use (P18).
//!
//! Off until the policy says `enabled = true`. [`plan`] says what the policy would do. [`run`] does it in the same short transactions as
//! any prune, also while OpenCode runs; its first run with a policy is a preview. Success is what the file shows, and a run that did
//! nothing has a reason and the age of the last success.

mod choose;
mod policy;
mod run;

pub use choose::{Choice, RetentionPlan, plan};
pub use policy::{Age, Policy, PolicyError, PolicyErrorKind};
pub use run::{Outcome, RetentionError, RetentionReport, Skip, run};

#[cfg(test)]
mod tests;
