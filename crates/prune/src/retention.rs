//! Which session trees go by their last use (P15, P18). A pure function of policy, facts and clock.

use std::collections::BTreeMap;

use headwater_model::{ByteCount, UnixMillis};

use crate::KeptReason;
use crate::tree::Shape;

/// What a person wants gone. At least one of the limits must be set, or nothing goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Trees last used before this instant go.
    pub used_before: Option<UnixMillis>,
    /// The most recently used this many trees of each project stay whatever the other limits say; where no other limit is set,
    /// the rest goes.
    pub keep_last: Option<u32>,
    /// The least recently used trees go until the rest holds at most this much.
    pub size_cap: Option<ByteCount>,
    /// Whether archived trees may go.
    pub archived: bool,
    /// Whether trees with a lost parent or a loop may go.
    pub broken: bool,
}

/// What is known of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeFacts<'a> {
    /// Project of the top session.
    pub project: &'a str,
    /// Latest use of any member; never a creation date. See [`plausibility`].
    pub last_use: UnixMillis,
    /// Whether the last use of any member is zero or negative, so that the age of the tree is a guess.
    pub has_guess: bool,
    /// Bytes that its rows hold.
    pub bytes: ByteCount,
    /// Whether any member is archived.
    pub archived: bool,
    /// Whether any member is pinned.
    pub pinned: bool,
    /// How the tree is held together.
    pub shape: Shape,
}

/// What happens to one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes, every member.
    Goes,
    /// The policy does not select it.
    Stays,
    /// The policy selects it, or cannot judge it, and it stays for this reason.
    Kept(KeptReason),
    /// It would go, but a person should decide: listed apart with this reason.
    Apart(KeptReason),
}

/// Whether a last use can be compared with the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plausibility {
    /// After 1970 and not after `now`.
    Plausible,
    /// Zero or negative, as imports leave it: the age is a guess.
    Unset,
    /// After `now`: some clock was wrong, and the tree may be in use.
    Future,
}

/// How far `last_use` can be relied on at `now`.
pub fn plausibility(last_use: UnixMillis, now: UnixMillis) -> Plausibility {
    if last_use.get() <= 0 {
        Plausibility::Unset
    } else if last_use > now {
        Plausibility::Future
    } else {
        Plausibility::Plausible
    }
}

/// The verdict for each of `trees`, in their order.
pub fn decide(policy: &Policy, now: UnixMillis, trees: &[TreeFacts<'_>]) -> Vec<Verdict> {
    if policy.used_before.is_none() && policy.keep_last.is_none() && policy.size_cap.is_none() {
        return vec![Verdict::Stays; trees.len()];
    }
    let recent = most_recent(policy, now, trees);
    let by_rank_alone =
        policy.keep_last.is_some() && policy.used_before.is_none() && policy.size_cap.is_none();
    let mut verdicts: Vec<Verdict> = trees
        .iter()
        .zip(&recent)
        .map(|(tree, recent)| {
            let selected = by_rank_alone || policy.used_before.is_some_and(|limit| tree.last_use < limit);
            judge(policy, now, tree, *recent, selected)
        })
        .collect();
    if let Some(cap) = policy.size_cap {
        apply_cap(policy, now, cap, trees, &recent, &mut verdicts);
    }
    verdicts
}

fn judge(policy: &Policy, now: UnixMillis, tree: &TreeFacts<'_>, recent: bool, selected: bool) -> Verdict {
    match plausibility(tree.last_use, now) {
        Plausibility::Future => return Verdict::Kept(KeptReason::LastUseImplausible),
        Plausibility::Plausible if !selected || recent => return Verdict::Stays,
        Plausibility::Unset | Plausibility::Plausible => {}
    }
    if tree.pinned {
        Verdict::Kept(KeptReason::Pinned)
    } else if tree.has_guess {
        // Also where some limit would not select it: an age that nobody knows is named, not judged.
        Verdict::Apart(KeptReason::LastUseImplausible)
    } else if tree.shape != Shape::Whole && !policy.broken {
        Verdict::Apart(KeptReason::BrokenTree)
    } else if tree.archived && !policy.archived {
        Verdict::Apart(KeptReason::Archived)
    } else {
        Verdict::Goes
    }
}

/// Which trees are among the `keep_last` most recently used of their project. A time that is no plausible last use takes no place.
fn most_recent(policy: &Policy, now: UnixMillis, trees: &[TreeFacts<'_>]) -> Vec<bool> {
    let mut recent = vec![false; trees.len()];
    let Some(keep) = policy.keep_last else { return recent };
    let mut by_project: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, tree) in trees.iter().enumerate() {
        if plausibility(tree.last_use, now) == Plausibility::Plausible {
            by_project.entry(tree.project).or_default().push(at);
        }
    }
    for mut members in by_project.into_values() {
        members.sort_by_key(|at| (std::cmp::Reverse(trees[*at].last_use), *at));
        members.iter().take(keep as usize).for_each(|at| recent[*at] = true);
    }
    recent
}

fn apply_cap(
    policy: &Policy,
    now: UnixMillis,
    cap: ByteCount,
    trees: &[TreeFacts<'_>],
    recent: &[bool],
    verdicts: &mut [Verdict],
) {
    let mut held: ByteCount = trees
        .iter()
        .zip(&*verdicts)
        .filter(|(_, verdict)| **verdict != Verdict::Goes)
        .map(|(tree, _)| tree.bytes)
        .sum();
    let mut oldest: Vec<usize> = (0..trees.len()).collect();
    oldest.sort_by_key(|at| (trees[*at].last_use, *at));
    for at in oldest {
        if held <= cap {
            return;
        }
        if verdicts[at] == Verdict::Stays {
            verdicts[at] = judge(policy, now, &trees[at], recent[at], true);
            if verdicts[at] == Verdict::Goes {
                held = held.saturating_sub(trees[at].bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_model::DAY_MS;

    const NOW: UnixMillis = UnixMillis::new(1_790_000_000_000);

    fn used(days_ago: i64) -> TreeFacts<'static> {
        TreeFacts {
            project: "a",
            last_use: NOW.minus_ms(days_ago * DAY_MS),
            has_guess: false,
            bytes: ByteCount::new(10),
            archived: false,
            pinned: false,
            shape: Shape::Whole,
        }
    }

    fn older_than(days: i64) -> Policy {
        Policy { used_before: Some(NOW.minus_ms(days * DAY_MS)), ..Policy::default() }
    }

    #[test]
    fn age_is_last_use_and_everything_doubtful_is_named() {
        let zero = TreeFacts { last_use: UnixMillis::new(0), has_guess: true, ..used(0) };
        let negative = TreeFacts { last_use: UnixMillis::new(-5), has_guess: true, ..used(0) };
        let table = [
            ("used yesterday", used(1), Verdict::Stays),
            ("idle", used(60), Verdict::Goes),
            ("used exactly at the limit", used(14), Verdict::Stays),
            ("future", used(-400), Verdict::Kept(KeptReason::LastUseImplausible)),
            ("archived", TreeFacts { archived: true, ..used(60) }, Verdict::Apart(KeptReason::Archived)),
            ("archived and in use", TreeFacts { archived: true, ..used(1) }, Verdict::Stays),
            ("zero", zero, Verdict::Apart(KeptReason::LastUseImplausible)),
            ("negative", negative, Verdict::Apart(KeptReason::LastUseImplausible)),
            (
                "one member zero",
                TreeFacts { has_guess: true, ..used(60) },
                Verdict::Apart(KeptReason::LastUseImplausible),
            ),
            ("pinned", TreeFacts { pinned: true, ..used(60) }, Verdict::Kept(KeptReason::Pinned)),
            ("loop", TreeFacts { shape: Shape::Loop, ..used(60) }, Verdict::Apart(KeptReason::BrokenTree)),
            (
                "lost parent",
                TreeFacts { shape: Shape::LostParent, ..used(60) },
                Verdict::Apart(KeptReason::BrokenTree),
            ),
            ("lost parent in use", TreeFacts { shape: Shape::LostParent, ..used(2) }, Verdict::Stays),
        ];
        for (name, tree, verdict) in table {
            assert_eq!(decide(&older_than(14), NOW, &[tree]), [verdict], "{name}");
        }
    }

    #[test]
    fn archived_and_broken_trees_go_where_the_policy_says_so() {
        let policy = Policy { archived: true, broken: true, ..older_than(14) };
        let trees = [
            TreeFacts { archived: true, ..used(60) },
            TreeFacts { shape: Shape::Loop, ..used(60) },
            TreeFacts { has_guess: true, ..used(60) },
        ];
        assert_eq!(
            decide(&policy, NOW, &trees),
            [Verdict::Goes, Verdict::Goes, Verdict::Apart(KeptReason::LastUseImplausible)]
        );
    }

    #[test]
    fn keep_last_counts_per_project_and_skips_wrong_clocks() {
        let policy = Policy { keep_last: Some(1), ..older_than(14) };
        let trees = [used(-9), used(30), used(20), TreeFacts { project: "b", ..used(90) }];
        assert_eq!(
            decide(&policy, NOW, &trees),
            [Verdict::Kept(KeptReason::LastUseImplausible), Verdict::Goes, Verdict::Stays, Verdict::Stays]
        );
        let alone = Policy { keep_last: Some(2), ..Policy::default() };
        assert_eq!(
            decide(&alone, NOW, &[used(3), used(1), used(2)]),
            [Verdict::Goes, Verdict::Stays, Verdict::Stays]
        );
    }

    #[test]
    fn a_size_cap_takes_the_least_recently_used_until_the_rest_fits() {
        let policy = Policy { size_cap: Some(ByteCount::new(25)), ..Policy::default() };
        let trees = [used(1), TreeFacts { pinned: true, ..used(9) }, used(8), used(2)];
        assert_eq!(
            decide(&policy, NOW, &trees),
            [Verdict::Stays, Verdict::Kept(KeptReason::Pinned), Verdict::Goes, Verdict::Goes]
        );
        let roomy = Policy { size_cap: Some(ByteCount::new(40)), ..Policy::default() };
        assert_eq!(decide(&roomy, NOW, &trees), [Verdict::Stays; 4]);
    }

    #[test]
    fn a_policy_without_a_limit_takes_nothing() {
        let zero = TreeFacts { last_use: UnixMillis::new(0), has_guess: true, ..used(0) };
        assert_eq!(decide(&Policy::default(), NOW, &[used(900), zero]), [Verdict::Stays; 2]);
    }
}
