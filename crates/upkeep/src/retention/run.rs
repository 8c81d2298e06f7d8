//! One run of a policy.

use headwater_model::{ByteCount, UnixMillis};
use serde::Serialize;

use super::choose::{self, RetentionPlan};
use super::policy::{Policy, PolicyErrorKind};
use crate::WriteDatabase;
use crate::fence::ServerProbe;
use crate::observer::Observer;
use crate::plan::PlanError;
use crate::prune::{PruneError, PruneOptions, PruneReport, Pruner, Stopped};
use crate::state::{DatabaseIdentity, DatabaseKey, RunEnd, RunKind, StateError, StateFile};

/// Why a run of a policy failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// The policy makes no sense at this instant.
    #[error("the policy cannot be used: {0}")]
    Policy(PolicyErrorKind),
    /// No plan can be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The prune failed; what it had committed is in its report in the state file.
    #[error(transparent)]
    Prune(#[from] PruneError),
    /// The state file.
    #[error(transparent)]
    State(#[from] StateError),
    /// SQLite reports something else.
    #[error("cannot read the database: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// What a run of a policy did.
#[derive(Clone, Debug, Serialize)]
pub struct RetentionReport {
    /// What came of it.
    pub outcome: Outcome,
    /// When a run last freed something, in milliseconds before this one; absent where none ever did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_ms_ago: Option<i64>,
    /// What the prune did, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<PruneReport>,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The first run with this policy: it was planned and shown, and nothing was removed.
    Previewed,
    /// Something was removed, and the file has more free bytes than before.
    Done {
        /// Bytes that became free inside the file.
        freed: ByteCount,
    },
    /// Nothing was achieved.
    Skipped(Skip),
}

/// Why a run achieved nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Skip {
    /// The policy is not enabled.
    #[error("retention is off")]
    Disabled,
    /// The policy chooses nothing.
    #[error("nothing to remove")]
    NothingChosen,
    /// Everything that was chosen is in use or has changed.
    #[error("everything that was chosen is in use or has changed")]
    AllKept,
    /// Rows went, but no page of the file became free.
    #[error("nothing was freed")]
    NothingFreed,
    /// Somebody else is at work on the database.
    #[error("the database is in use")]
    Blocked,
    /// The caller stopped it.
    #[error("cancelled")]
    Cancelled,
}

/// Runs `policy` once. The first run with a policy only previews it, and is recorded as that; `shown` gets the plan of every run.
///
/// # Errors
/// [`RetentionError`].
#[expect(clippy::too_many_arguments, reason = "each is another part of the world that the run touches")]
pub fn run(
    database: &WriteDatabase,
    state: &mut StateFile,
    policy: &Policy,
    probe: &dyn ServerProbe,
    options: PruneOptions,
    now: UnixMillis,
    observer: &dyn Observer,
    shown: impl FnOnce(&RetentionPlan),
) -> Result<RetentionReport, RetentionError> {
    let connection = database.connection();
    let key = state.database(&DatabaseIdentity::read(connection, database.file())?)?;
    let last = state.last_run(key, RunKind::Retention, Some(RunEnd::Done))?;
    let last_success_ms_ago = last.map(|run| now.since(run.started));
    let report = |outcome| RetentionReport { outcome, last_success_ms_ago, prune: None };
    if !policy.enabled {
        return Ok(report(Outcome::Skipped(Skip::Disabled)));
    }
    let planned = choose::plan(connection, database.schema(), policy, now, observer)?;
    shown(&planned);
    if !is_previewed(state, key, policy)? {
        let run = state.begin_run(key, RunKind::RetentionPreview, now)?;
        state.end_run(run, RunEnd::Done, &preview_record(policy), now)?;
        return Ok(report(Outcome::Previewed));
    }
    if planned.is_empty() {
        return skipped(state, key, now, report(Outcome::Skipped(Skip::NothingChosen)));
    }
    let mut pruner = Pruner::new(database, state, probe, options, now, observer)?;
    let (pruned, failure) = pruner.apply(&planned.plan, &planned.selection);
    let outcome = outcome(&pruned);
    let report = RetentionReport { prune: Some(pruned), ..report(outcome) };
    record(state, key, now, &report)?;
    failure?;
    Ok(report)
}

/// What the file says.
fn outcome(pruned: &PruneReport) -> Outcome {
    let freed = pruned.space.freed();
    match pruned.stopped {
        _ if !freed.is_zero() => Outcome::Done { freed },
        Some(Stopped::Cancelled) => Outcome::Skipped(Skip::Cancelled),
        Some(Stopped::Blocked(_)) => Outcome::Skipped(Skip::Blocked),
        Some(Stopped::Failed) | None if pruned.is_empty() => Outcome::Skipped(Skip::AllKept),
        Some(Stopped::Failed) | None => Outcome::Skipped(Skip::NothingFreed),
    }
}

fn skipped(
    state: &mut StateFile,
    key: DatabaseKey,
    now: UnixMillis,
    report: RetentionReport,
) -> Result<RetentionReport, RetentionError> {
    record(state, key, now, &report)?;
    Ok(report)
}

fn record(
    state: &mut StateFile,
    key: DatabaseKey,
    now: UnixMillis,
    report: &RetentionReport,
) -> Result<(), StateError> {
    let end = match report.outcome {
        Outcome::Done { .. } => RunEnd::Done,
        Outcome::Skipped(_) | Outcome::Previewed => RunEnd::Skipped,
    };
    let run = state.begin_run(key, RunKind::Retention, now)?;
    state.end_run(run, end, &serde_json::to_string(report).unwrap_or_default(), now)
}

fn preview_record(policy: &Policy) -> String {
    format!("{{\"policy\":\"{}\"}}", policy.digest())
}

/// Whether the newest preview on record is of this very policy.
fn is_previewed(state: &StateFile, key: DatabaseKey, policy: &Policy) -> Result<bool, StateError> {
    let last = state.last_run(key, RunKind::RetentionPreview, Some(RunEnd::Done))?;
    Ok(last.and_then(|run| run.report).is_some_and(|record| record == preview_record(policy)))
}
