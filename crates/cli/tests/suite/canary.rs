//! What was said in a conversation stands in the database, in its copies, and in the output of verbs whose job is to show it. It never
//! stands in an error, a log, a receipt, a plan, a report or a file of state, whatever goes wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::program::{self, Run};

mod faults;
pub(crate) mod scene;
mod verbs;

use scene::{CONTENT, SECRET, TITLE};

/// What may stand in the standard output of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// No text of anybody.
    Nothing,
    /// Titles, directories, names of projects, agents and models: what a list of sessions is for.
    Titles,
    /// What was said: verbs that show, find or export it.
    Content,
}

/// What a call is for. The list is complete: whatever is not in it shows nothing.
fn shows(arguments: &[&str]) -> Shows {
    match arguments[0] {
        "show" | "search" | "export" => Shows::Content,
        "sessions" | "stats" => Shows::Titles,
        // Names the place of the session, which the caller compares.
        "preview" | "prune" if arguments.contains(&"--message") => Shows::Titles,
        _ => Shows::Nothing,
    }
}

/// A folder with the database in it, and what was run there.
struct Place {
    home: tempfile::TempDir,
    verbs: Mutex<BTreeSet<String>>,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        scene::database(home.path());
        Self { home, verbs: Mutex::default() }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn database(&self) -> PathBuf {
        self.path().join("opencode.db")
    }

    /// Runs a verb for people and for programs, and looks at everything that it says. Answers the run for programs, which is the first.
    fn run(&self, arguments: &[&str], status: i32) -> Run {
        let asked = self.says(&[arguments, &["--json"]].concat());
        assert_eq!(asked.status, status, "{arguments:?}: {asked:?}");
        self.says(arguments);
        asked
    }

    /// Runs a verb once, which must end with `status`.
    fn once(&self, arguments: &[&str], status: i32) {
        let run = self.says(arguments);
        assert_eq!(run.status, status, "{arguments:?}: {run:?}");
    }

    /// Runs a verb as it stands, with the most that it may tell.
    fn says(&self, arguments: &[&str]) -> Run {
        self.verbs.lock().unwrap().insert(arguments[0].to_owned());
        let mut command = program::command(self.path());
        command.args(arguments).args(["--db", "opencode.db"]).envs(TALKATIVE);
        let run: Run = command.output().unwrap().into();
        assert_discreet(arguments, &run);
        run
    }

    /// Looks into every file that is not a database, or a copy that was asked for.
    fn assert_files_are_discreet(&self, copies: &[&str]) {
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.path()).unwrap().to_str().unwrap().to_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if !name.starts_with("opencode.db") && !copies.contains(&name.as_str()) {
                    let bytes = fs::read(&path).unwrap();
                    for word in [CONTENT, TITLE, SECRET] {
                        assert!(!has(&bytes, word), "{name} holds {word}");
                    }
                }
            }
        }
    }
}

/// What makes a program tell more, where it heeds it.
const TALKATIVE: [(&str, &str); 3] =
    [("RUST_LOG", "trace"), ("RUST_BACKTRACE", "full"), ("HEADWATER_LOG", "trace")];

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

fn assert_discreet(arguments: &[&str], run: &Run) {
    assert!((0..=5).contains(&run.status), "{arguments:?}: {run:?}");
    for word in [CONTENT, TITLE, SECRET] {
        assert!(!has(run.stderr.as_bytes(), word), "{arguments:?} tells {word}: {}", run.stderr);
    }
    let forbidden = match shows(arguments) {
        Shows::Nothing => &[CONTENT, TITLE, SECRET][..],
        Shows::Titles => &[CONTENT, SECRET],
        Shows::Content => &[SECRET],
    };
    for word in forbidden {
        let line = run.stdout.lines().find(|line| has(line.as_bytes(), word));
        assert_eq!(line, None, "{arguments:?} shows {word}");
    }
}

const ALL: [&str; 14] = [
    "--class",
    "events",
    "--class",
    "technical",
    "--class",
    "metadata",
    "--class",
    "diffs",
    "--class",
    "attachments",
    "--class",
    "compacted",
    "--newest-turn",
    "--yes",
];
