//! Which trees a policy chooses, and what goes of them.

use headwater_model::{ByteCount, ProjectId, SessionId, UnixMillis};
use headwater_prune::retention::{self as rules, TreeFacts, Verdict};
use headwater_prune::{Class, KeptReason};
use rusqlite::Connection;
use serde::Serialize;

use super::policy::{Policy, PolicyErrorKind};
use super::run::RetentionError;
use crate::observer::Observer;
use crate::plan::judge::{Sink, Taken};
use crate::plan::scope::tree_facts;
use crate::plan::whole::WholeSessions;
use crate::plan::{self, Plan, Selection};
use crate::schema::Schema;
use crate::survey::roster::Roster;

/// What a policy says of one session tree. Holds no content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The top session.
    pub session: SessionId,
    /// Sessions in the tree.
    pub sessions: u64,
    /// Project of the top session.
    pub project: String,
    /// Latest use of any member.
    pub last_use: UnixMillis,
    /// Bytes of its rows, where the policy has a size cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteCount>,
    /// Why it stays although the policy would choose it; absent where it is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptReason>,
}

/// What a policy would do to a database.
#[derive(Clone, Debug)]
pub struct RetentionPlan {
    /// Chosen trees, and trees that stay for a reason of their own, least recently used first.
    pub choices: Vec<Choice>,
    /// The selection that the plan was computed with.
    pub selection: Selection,
    /// What goes.
    pub plan: Plan,
}

impl RetentionPlan {
    /// Whether nothing goes.
    pub fn is_empty(&self) -> bool {
        self.plan.fates.is_empty()
    }
}

/// Computes what `policy` would do to the database behind `connection` at `now`. Reads only, whether the policy is enabled or not.
///
/// # Errors
/// [`RetentionError`] where an age reaches back before 1970 or the database cannot be read.
pub fn plan(
    connection: &Connection,
    schema: &Schema,
    policy: &Policy,
    now: UnixMillis,
    observer: &dyn Observer,
) -> Result<RetentionPlan, RetentionError> {
    let used_before = match policy.older_than {
        Some(age) => Some(age.before(now).ok_or(RetentionError::Policy(PolicyErrorKind::Age))?),
        None => None,
    };
    let mut choosing = Choosing::new(connection, schema, policy)?;
    let limits = rules::Policy {
        used_before,
        keep_last: policy.keep_last,
        size_cap: policy.size_cap,
        archived: policy.archived,
        broken: false,
    };
    let (choices, chosen) = choosing.choose(policy, &limits, now);
    let selection = selection(policy, &choosing.roster, &choices, chosen, now);
    let plan = match &selection {
        Some(selection) => plan::compute(connection, schema, selection, observer)?,
        None => Plan::default(),
    };
    let selection = selection.unwrap_or_else(|| Selection::new(policy.classes, now));
    Ok(RetentionPlan { choices, selection, plan })
}

/// The selection for the chosen sessions; `None` where none is chosen, because no name at all would mean every session.
fn selection(
    policy: &Policy,
    roster: &Roster,
    choices: &[Choice],
    chosen: Vec<SessionId>,
    now: UnixMillis,
) -> Option<Selection> {
    let base = Selection {
        projects: policy.projects.clone(),
        // A policy stays when a session that it pins goes.
        pins: policy.pins.iter().filter(|pin| roster.position(pin.as_str()).is_some()).cloned().collect(),
        archived: policy.archived,
        ..Selection::new(policy.classes, now)
    };
    if !policy.has_limit() {
        let is_known = |project: &ProjectId| roster.projects.iter().any(|known| **known == *project.as_str());
        let projects: Vec<ProjectId> =
            base.projects.iter().filter(|project| is_known(project)).cloned().collect();
        // Projects that have no session yet select nothing, and never everything.
        return (base.projects.is_empty() || !projects.is_empty()).then_some(Selection { projects, ..base });
    }
    // A tree that is used after this instant is not what was chosen.
    let latest = choices.iter().filter(|choice| choice.kept.is_none()).map(|choice| choice.last_use).max()?;
    let used_before = Some(UnixMillis::new(latest.get().saturating_add(1)));
    Some(Selection { sessions: chosen, projects: Vec::new(), used_before, ..base })
}

struct Choosing {
    roster: Roster,
    bytes: Option<Vec<ByteCount>>,
}

impl Choosing {
    fn new(connection: &Connection, schema: &Schema, policy: &Policy) -> rusqlite::Result<Self> {
        let snapshot = connection.unchecked_transaction()?;
        let roster = Roster::read(&snapshot, schema)?;
        let bytes = match policy.size_cap {
            Some(_) => Some(session_bytes(&snapshot, schema, &roster)?),
            None => None,
        };
        Ok(Self { roster, bytes })
    }

    /// The verdicts that a person wants to see, and every session of the chosen trees.
    fn choose(
        &mut self,
        policy: &Policy,
        limits: &rules::Policy,
        now: UnixMillis,
    ) -> (Vec<Choice>, Vec<SessionId>) {
        let forest = self.roster.forest();
        let id = |at: usize| SessionId::new(&*self.roster.sessions[at].id).ok();
        let mut facts: Vec<TreeFacts<'_>> = Vec::with_capacity(forest.trees().len());
        for tree in forest.trees() {
            let members = || tree.members.iter().map(|at| &self.roster.sessions[*at]);
            let pinned = members().any(|member| policy.pins.iter().any(|pin| *pin.as_str() == *member.id));
            let bytes = self.bytes.as_ref().map(|bytes| tree.members.iter().map(|at| bytes[*at]).sum());
            facts.push(TreeFacts {
                pinned,
                bytes: bytes.unwrap_or_default(),
                ..tree_facts(&self.roster, tree)
            });
        }
        let verdicts = rules::decide(limits, now, &facts);
        let (mut choices, mut chosen) = (Vec::new(), Vec::new());
        for ((tree, facts), verdict) in forest.trees().iter().zip(&facts).zip(verdicts) {
            let kept = match verdict {
                Verdict::Stays => continue,
                Verdict::Goes => None,
                Verdict::Kept(reason) | Verdict::Apart(reason) => Some(reason),
            };
            let is_asked = policy.projects.is_empty()
                || policy.projects.iter().any(|project| project.as_str() == facts.project);
            let existing: Vec<usize> =
                tree.members.iter().copied().filter(|at| self.roster.sessions[*at].exists()).collect();
            let Some(session) = existing.first().and_then(|at| id(*at)).filter(|_| is_asked) else {
                continue;
            };
            if kept.is_none() {
                chosen.extend(existing.iter().filter_map(|at| id(*at)));
            }
            choices.push(Choice {
                session,
                sessions: existing.len() as u64,
                project: facts.project.to_owned(),
                last_use: facts.last_use,
                bytes: self.bytes.is_some().then_some(facts.bytes),
                kept,
            });
        }
        choices.sort_by(|a, b| (a.last_use, &a.session).cmp(&(b.last_use, &b.session)));
        (choices, chosen)
    }
}

/// Bytes of all rows of each session, by position in the roster.
fn session_bytes(
    connection: &Connection,
    schema: &Schema,
    roster: &Roster,
) -> rusqlite::Result<Vec<ByteCount>> {
    let mut whole = WholeSessions::new(connection, schema)?;
    let mut bytes = Vec::with_capacity(roster.sessions.len());
    for session in &roster.sessions {
        let mut sum = Sum(0);
        whole.take(&session.id, Class::Sessions, &mut sum)?;
        bytes.push(ByteCount::new(sum.0));
    }
    Ok(bytes)
}

struct Sum(u64);

impl Sink for Sum {
    fn take(&mut self, taken: &Taken<'_>) {
        self.0 = self.0.saturating_add(taken.bytes);
    }

    fn keep(&mut self, _session: &str, _message: Option<&str>, _reason: KeptReason) {}
}
