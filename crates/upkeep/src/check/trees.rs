//! Session trees, and sessions in two layouts.

use headwater_prune::tree::Shape;

use super::{Check, Code};
use crate::survey::roster::Roster;

pub(super) fn check(check: &mut Check<'_>, roster: &Roster) {
    let findings = &mut check.findings;
    for tree in roster.forest().trees() {
        let code = match tree.shape {
            Shape::Whole => continue,
            Shape::LostParent => Code::ParentMissing,
            Shape::Loop => Code::ParentLoop,
        };
        if let Some(first) = tree.members.first() {
            findings.add(code, None, &roster.sessions[*first].id);
        }
    }
    for session in &roster.sessions {
        if session.v1.is_some() && session.v2.is_some() {
            findings.add(Code::SessionInBothLayouts, None, &session.id);
        }
        if session.deleted_in_v2 {
            findings.add(Code::Leftover, None, &session.id);
        }
    }
    if roster.unreadable > 0 {
        findings.add_many(Code::UnusableSessionId, None, roster.unreadable, "a row of session or session_v2");
    }
}
