//! The built program, run on one OpenCode's database.

use std::path::PathBuf;
use std::process::{Command, Output};

use headwater_testkit::opencode::OpenCode;
use headwater_testkit::wait::until;
use serde_json::Value;

/// Exit status of a command that did what it was asked.
const DONE: i32 = 0;

/// Exit status of a command that was refused, for instance because a session had changed a moment ago.
const BUSY: i32 = 3;

/// Where the program works.
pub(crate) struct Headwater {
    database: PathBuf,
    state: PathBuf,
}

impl Headwater {
    /// For the database of `opencode`, with a state folder of its own.
    pub(crate) fn beside(opencode: &OpenCode) -> Self {
        Self { database: opencode.database(), state: opencode.home().path("headwater-state") }
    }

    /// Runs a command with `--json` and returns its last line: the result.
    ///
    /// # Panics
    /// If it fails.
    pub(crate) fn run(&self, arguments: &[&str]) -> Value {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(DONE), "{arguments:?}: {}", told(&output));
        last_line(&output)
    }

    /// The same, again and again while the answer is "later": sessions settle for a moment after a turn, and a server may be too slow to
    /// say what it is doing.
    ///
    /// # Panics
    /// If it fails or is refused for another reason.
    pub(crate) fn run_when_settled(&self, arguments: &[&str]) -> Value {
        let mut result = Value::Null;
        until("sessions to settle", || {
            let output = self.output(arguments);
            let told = told(&output);
            let is_done = output.status.code() == Some(DONE);
            let is_later = ["not-settled", "maintenance_required"].iter().any(|reason| told.contains(reason));
            let is_later = is_later && output.status.code() == Some(BUSY);
            assert!(is_done || is_later, "{arguments:?}: {:?}: {told}", output.status);
            result = last_line(&output);
            is_done
        });
        result
    }

    fn output(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_headwater"))
            .arg("--db")
            .arg(&self.database)
            .arg("--json")
            .args(arguments)
            .env("XDG_STATE_HOME", &self.state)
            .output()
            .unwrap()
    }
}

/// The value of the member `name`, wherever it stands in a result.
pub(crate) fn find<'a>(result: &'a Value, name: &str) -> Option<&'a Value> {
    match result {
        Value::Object(members) => {
            members.get(name).or_else(|| members.values().find_map(|member| find(member, name)))
        }
        Value::Array(items) => items.iter().find_map(|item| find(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn last_line(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().next_back().unwrap_or_default()).unwrap()
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
