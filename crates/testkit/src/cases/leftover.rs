use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, NOW, Session, part, v2};

/// What [`leftover`] built.
#[derive(Debug)]
pub struct Leftover {
    /// The database, with both layouts.
    pub path: PathBuf,
    /// Sessions, each counted once.
    pub sessions: u64,
    /// Rows left over from a session that was deleted, on evidence.
    pub left_over: Vec<&'static str>,
    /// Sessions that stay: one in both layouts, and an only copy made after the move.
    pub keep: Vec<&'static str>,
}

/// Both layouts in one file, one side deleted or never copied (opencode 50260, 49412).
///
/// Right: `ses_both` is one session; `ses_deleted` is shown as left over, with its bytes, and removed only by that class;
/// `ses_v1_only` is the only copy of its conversation and never in it. What tells them apart is a `session.deleted` event; where
/// nothing does, rows stay.
pub fn leftover(folder: &Path) -> Leftover {
    let db = create(folder, Layout::ReducedBoth);
    for id in ["ses_both", "ses_deleted", "ses_v1_only"] {
        db.session(&Session::named(id));
        let message = format!("msg_{id}");
        db.user(&message, id);
        let text = format!("v1 text of {id} {}", "z".repeat(3000));
        db.part(&format!("prt_{id}"), &message, id, &part::text(&text));
    }
    db.session_v2(&Session::named("ses_both"));
    db.session_message("smg_1", "ses_both", "user", 0, NOW, &v2::user("v2 text of ses_both"));
    db.event("ses_deleted", "session.deleted.1", r#"{"sessionID":"ses_deleted"}"#);
    Leftover {
        path: db.close(),
        sessions: 3,
        left_over: vec!["ses_deleted"],
        keep: vec!["ses_both", "ses_v1_only"],
    }
}
