//! Which sessions a selection covers, and which go whole. Decides for trees, never for a member alone (P15).

use std::collections::BTreeSet;

use headwater_model::{ByteCount, UnixMillis};
use headwater_prune::retention::{Policy, TreeFacts, Verdict, decide};
use headwater_prune::tree::{Forest, Tree};
use headwater_prune::{Class, KeptReason};

use super::{PlanError, PlanErrorKind, Selection};
use crate::survey::roster::{Roster, Session};

/// What a selection means for each session of a roster, by position.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Whether the classes that take content and events reach the session.
    pub(crate) covered: Vec<bool>,
    /// The class that takes the session whole.
    pub(crate) whole: Vec<Option<Class>>,
    /// Sessions that the selection named or covered and that stay.
    pub(crate) kept: BTreeSet<(usize, KeptReason)>,
}

/// Resolves `selection`.
///
/// # Errors
/// Where it names what does not exist, or every session.
pub(crate) fn resolve(roster: &Roster, forest: &Forest, selection: &Selection) -> Result<Scope, PlanError> {
    let resolving = Resolving::new(roster, forest, selection)?;
    let mut scope = Scope {
        covered: vec![false; roster.sessions.len()],
        whole: vec![None; roster.sessions.len()],
        kept: BTreeSet::new(),
    };
    if selection.classes.iter().any(|class| class != Class::Sessions) {
        resolving.cover(&mut scope);
    }
    if selection.classes.has(Class::Sessions) {
        resolving.take_trees(&mut scope)?;
    }
    if selection.classes.has(Class::Leftover) {
        resolving.take_leftovers(&mut scope);
    }
    for (covered, whole) in scope.covered.iter_mut().zip(&scope.whole) {
        *covered &= whole.is_none();
    }
    Ok(scope)
}

/// A pin that names nothing is a slip of the hand, and what it was to keep would go. Only asked when a plan is made: a session may be
/// gone when the plan is carried out.
pub(super) fn ensure_pins_known(roster: &Roster, selection: &Selection) -> Result<(), PlanError> {
    match selection.pins.iter().find(|id| roster.position(id.as_str()).is_none()) {
        Some(id) => Err(PlanErrorKind::UnknownSession(id.to_string()).into()),
        None => Ok(()),
    }
}

struct Resolving<'a> {
    roster: &'a Roster,
    forest: &'a Forest,
    selection: &'a Selection,
    named: BTreeSet<usize>,
    projects: BTreeSet<usize>,
    pinned: Vec<bool>,
}

impl<'a> Resolving<'a> {
    fn new(roster: &'a Roster, forest: &'a Forest, selection: &'a Selection) -> Result<Self, PlanError> {
        let mut named = BTreeSet::new();
        for id in &selection.sessions {
            let position = roster.position(id.as_str());
            match position.filter(|at| roster.sessions[*at].exists()) {
                Some(position) => named.insert(position),
                None => return Err(PlanErrorKind::UnknownSession(id.to_string()).into()),
            };
        }
        let mut projects = BTreeSet::new();
        for id in &selection.projects {
            match roster.projects.iter().position(|project| project.as_ref() == id.as_str()) {
                Some(position) => projects.insert(position),
                None => return Err(PlanErrorKind::UnknownProject(id.to_string()).into()),
            };
        }
        let mut pinned = vec![false; forest.trees().len()];
        for position in selection.pins.iter().filter_map(|id| roster.position(id.as_str())) {
            pinned[forest.tree_of(position)] = true;
        }
        Ok(Self { roster, forest, selection, named, projects, pinned })
    }

    /// The classes that take content and events reach the named sessions, or all, of trees that the limits select.
    fn cover(&self, scope: &mut Scope) {
        let verdicts = self.verdicts(Policy { archived: true, broken: true, ..self.policy() });
        for (tree, members) in self.forest.trees().iter().enumerate() {
            for member in members.members.iter().copied().filter(|member| self.is_asked(*member)) {
                let kept = match verdicts[tree] {
                    Verdict::Stays => continue,
                    // Rows without a session row have no last use.
                    _ if self.has_limit() && !self.roster.sessions[member].exists() => continue,
                    _ if self.pinned[tree] => Some(KeptReason::Pinned),
                    Verdict::Goes => None,
                    Verdict::Kept(reason) | Verdict::Apart(reason) => Some(reason),
                };
                match kept {
                    Some(reason) => _ = scope.kept.insert((member, reason)),
                    None => scope.covered[member] = true,
                }
            }
        }
    }

    /// Class sessions: named sessions with all below them, or whole trees by last use.
    fn take_trees(&self, scope: &mut Scope) -> Result<(), PlanError> {
        if self.named.is_empty() {
            if !self.has_limit() {
                return Err(PlanErrorKind::EverySession.into());
            }
            let verdicts = self.verdicts(self.policy());
            for (at, tree) in self.forest.trees().iter().enumerate() {
                if tree.members.iter().any(|member| self.is_asked(*member)) {
                    self.take_tree(&tree.members, verdicts[at], scope);
                }
            }
            return Ok(());
        }
        let verdicts = self.verdicts(Policy { archived: true, broken: true, ..self.policy() });
        for session in &self.named {
            let tree = self.forest.tree_of(*session);
            let verdict = if self.pinned[tree] { Verdict::Kept(KeptReason::Pinned) } else { verdicts[tree] };
            self.take_tree(&self.forest.below(*session), verdict, scope);
        }
        Ok(())
    }

    fn take_tree(&self, members: &[usize], verdict: Verdict, scope: &mut Scope) {
        let existing = || members.iter().copied().filter(|member| self.roster.sessions[*member].exists());
        let claim = || existing().find_map(|member| self.roster.sessions[member].state.kept());
        let kept = match verdict {
            Verdict::Stays => return,
            Verdict::Kept(reason) | Verdict::Apart(reason) => Some(reason),
            Verdict::Goes => claim(),
        };
        for member in existing() {
            match kept {
                None => scope.whole[member] = Some(Class::Sessions),
                Some(reason) => _ = scope.kept.insert((member, reason)),
            }
        }
    }

    /// Class leftover: 1.x rows of sessions that were deleted in 2.x, each with everything below it that has only 1.x rows.
    fn take_leftovers(&self, scope: &mut Scope) {
        for (at, session) in self.roster.sessions.iter().enumerate() {
            if !session.deleted_in_v2 || !scope.covered[at] || scope.whole[at].is_some() {
                continue;
            }
            let needs_parent = |below: &usize| {
                is_v1_only(&self.roster.sessions[*below]) && !self.roster.sessions[*below].deleted_in_v2
            };
            if self.forest.below(at).iter().any(needs_parent) {
                scope.kept.insert((at, KeptReason::OnlyCopy));
            } else if let Some(reason) = session.state.kept() {
                scope.kept.insert((at, reason));
            } else {
                scope.whole[at] = Some(Class::Leftover);
            }
        }
    }

    fn is_asked(&self, member: usize) -> bool {
        let session = &self.roster.sessions[member];
        let in_project = || session.project.is_some_and(|project| self.projects.contains(&project));
        (self.named.is_empty() || self.named.contains(&member)) && (self.projects.is_empty() || in_project())
    }

    fn has_limit(&self) -> bool {
        self.selection.used_before.is_some() || self.selection.keep_last.is_some()
    }

    fn policy(&self) -> Policy {
        Policy {
            used_before: self.selection.used_before,
            keep_last: self.selection.keep_last,
            size_cap: None,
            archived: self.selection.archived,
            broken: self.selection.broken_trees,
        }
    }

    /// What the limits say of each tree; without a limit every tree is selected.
    fn verdicts(&self, policy: Policy) -> Vec<Verdict> {
        if !self.has_limit() {
            return vec![Verdict::Goes; self.forest.trees().len()];
        }
        let facts: Vec<TreeFacts<'_>> = self
            .forest
            .trees()
            .iter()
            .zip(&self.pinned)
            .map(|(tree, pinned)| TreeFacts { pinned: *pinned, ..tree_facts(self.roster, tree) })
            .collect();
        decide(&policy, self.selection.now, &facts)
    }
}

fn is_v1_only(session: &Session) -> bool {
    session.v1.is_some() && session.v2.is_none()
}

/// The facts of one tree, unpinned and without bytes.
pub(crate) fn tree_facts<'a>(roster: &'a Roster, tree: &Tree) -> TreeFacts<'a> {
    let sessions =
        || tree.members.iter().map(|member| &roster.sessions[*member]).filter(|session| session.exists());
    let project =
        sessions().find_map(|session| session.project).map_or("", |project| &roster.projects[project]);
    TreeFacts {
        project,
        last_use: sessions().map(|session| session.last_use).max().unwrap_or_default(),
        has_guess: sessions().any(|session| session.last_use <= UnixMillis::default()),
        bytes: ByteCount::ZERO,
        archived: sessions().any(|session| session.is_archived),
        pinned: false,
        shape: tree.shape,
    }
}
