//! The verbs that open a database, with arguments that make sense on any of them.

use std::ffi::OsString;
use std::path::Path;

/// A call of a verb.
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    arguments: &'static [&'static str],
    /// The exit status on a database without sessions.
    pub(crate) status_without_sessions: i32,
}

impl Verb {
    const fn new(
        name: &'static str,
        arguments: &'static [&'static str],
        status_without_sessions: i32,
    ) -> Self {
        Self { name, arguments, status_without_sessions }
    }

    /// All arguments, for `database`.
    pub(crate) fn with(&self, database: &Path) -> impl Iterator<Item = OsString> {
        let fixed = self.name.split(' ').chain(self.arguments.iter().copied()).map(OsString::from);
        fixed.chain([OsString::from("--db"), database.into()]).collect::<Vec<_>>().into_iter()
    }
}

/// Verbs that only read.
pub(crate) const READING: &[Verb] = &[
    Verb::new("stats", &[], 0),
    Verb::new("sessions", &[], 4),
    Verb::new("show", &["ses_none"], 2),
    Verb::new("search", &["word"], 4),
    Verb::new("export", &["--all"], 4),
    Verb::new("preview", &["--class", "events"], 4),
    Verb::new("check", &[], 0),
    Verb::new("retention plan", &[], 4),
];

/// Every verb.
pub(crate) const VERBS: &[Verb] = &[
    Verb::new("stats", &[], 0),
    Verb::new("sessions", &[], 4),
    Verb::new("show", &["ses_none"], 2),
    Verb::new("preview", &["--class", "events"], 4),
    Verb::new("check", &[], 0),
    Verb::new("search", &["word"], 4),
    Verb::new("export", &["--all", "--output", "all.jsonl"], 4),
    Verb::new("retention plan", &[], 4),
    Verb::new("prune", &["--class", "events", "--yes"], 4),
    Verb::new("rebuild", &["--yes"], 4),
    Verb::new("vacuum", &["--yes"], 4),
    Verb::new("backup", &["copy.db"], 0),
    Verb::new("retention run", &["--yes"], 4),
    Verb::new("undo", &["--archive", "none", "--yes"], 1),
];
