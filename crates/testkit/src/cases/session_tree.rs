use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{DAY, Layout, NOW, Session, message, part};

/// What [`session_tree`] built.
#[derive(Debug)]
pub struct SessionTree {
    /// The database.
    pub path: PathBuf,
    /// The caller's clock, in Unix milliseconds.
    pub now: i64,
    /// Retention in days.
    pub days: i64,
    /// The tree that goes as one, children first.
    pub goes: Vec<&'static str>,
    /// The tree that stays as one: its grandchild was used at `now`.
    pub stays: Vec<&'static str>,
    /// A lost parent and a loop: the walk ends and both are reported.
    pub reported: Vec<&'static str>,
}

/// Old parents with fresh children and the other way round, a lost parent, a loop (opencode 16101, 31526).
///
/// Right: a tree is one unit; no row is left whose parent is gone; `child_lost` follows its own last use.
pub fn session_tree(folder: &Path) -> SessionTree {
    let db = create(folder, Layout::ReducedV1);
    let old = NOW - 60 * DAY;
    for (id, parent, updated) in [
        ("root_1", None, old),
        ("child_1", Some("root_1"), old),
        ("grand_1", Some("child_1"), NOW),
        ("root_2", None, old),
        ("child_2a", Some("root_2"), old),
        ("child_2b", Some("root_2"), old),
        ("child_lost", Some("gone_parent"), old),
        ("loop_a", Some("loop_b"), old),
        ("loop_b", Some("loop_a"), old),
    ] {
        db.session(&Session { parent, created: old, updated, ..Session::named(id) });
        let message = format!("msg_{id}");
        db.message(&message, id, old, &message::assistant("msg_none", old));
        let call = format!("c_{id}");
        let tool = part::Tool::named(&call, "task", r#"{"description":"child","prompt":"go"}"#.to_owned());
        db.part_at(&format!("prt_{id}"), &message, id, old, &tool.completed(&"out ".repeat(50)));
        db.event(id, "session.created.1", &format!(r#"{{"sessionID":"{id}"}}"#));
    }
    SessionTree {
        path: db.close(),
        now: NOW,
        days: 14,
        goes: vec!["child_2a", "child_2b", "root_2"],
        stays: vec!["root_1", "child_1", "grand_1"],
        reported: vec!["child_lost", "loop_a", "loop_b"],
    }
}
