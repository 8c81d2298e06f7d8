use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{DAY, Layout, NOW, Session, message, part};

/// What [`idle_not_age`] built.
#[derive(Debug)]
pub struct IdleNotAge {
    /// The database.
    pub path: PathBuf,
    /// The caller's clock, in Unix milliseconds.
    pub now: i64,
    /// Retention in days.
    pub days: i64,
    /// Sessions that retention may take.
    pub candidates: Vec<&'static str>,
    /// Sessions that are named and kept: archived (the user may want it back), and last use unknown (time 0).
    pub listed_apart: Vec<&'static str>,
    /// Sessions that are simply kept.
    pub kept: Vec<&'static str>,
}

/// Sessions that are old but in use, with zero and future times (aidevops 24396, opencode 16101).
///
/// Right: retention looks at the last use and never at the start; a guess never deletes.
pub fn idle_not_age(folder: &Path) -> IdleNotAge {
    let db = create(folder, Layout::ReducedV1);
    let old = NOW - 90 * DAY;
    for (id, created, updated, archived) in [
        ("ses_old_resumed", old, NOW - DAY, None),
        ("ses_old_idle", old, NOW - 60 * DAY, None),
        ("ses_new", NOW, NOW, None),
        ("ses_future", old, NOW + 400 * DAY, None),
        ("ses_archived", old, NOW - 60 * DAY, Some(NOW - DAY)),
        ("ses_zero", old, 0, None),
    ] {
        db.session(&Session { created, updated, archived, ..Session::named(id) });
        let message = format!("msg_{id}");
        db.message(&message, id, created, &message::user(created));
        db.part_at(&format!("prt_{id}"), &message, id, created, &part::text(&format!("hello {id}")));
    }
    IdleNotAge {
        path: db.close(),
        now: NOW,
        days: 14,
        candidates: vec!["ses_old_idle"],
        listed_apart: vec!["ses_archived", "ses_zero"],
        kept: vec!["ses_future", "ses_new", "ses_old_resumed"],
    }
}
