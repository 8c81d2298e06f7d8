//! The built program, run on one OpenCode's database.

use std::path::PathBuf;
use std::process::{Command, Output};

use headwater_testkit::fixture::Fixture;
use headwater_testkit::opencode::OpenCode;
use headwater_testkit::wait::until;
use rusqlite::config::DbConfig;
use serde_json::Value;

/// Exit status of a command that did what it was asked.
const DONE: i32 = 0;

/// Exit status of a command that was refused, for instance because a session had changed a moment ago.
const BUSY: i32 = 3;

/// How long a session is left alone after a change, in milliseconds: the default of the program.
const SETTLE_MS: i64 = 2000;

/// Writes that OpenCode makes after a turn is over (fact A7). Each may unsettle a session once more.
const WRITES_AFTER_A_TURN: u32 = 2;

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

    /// The same once the sessions that `arguments` name have settled (fact A7). Only `not-settled` is answered with another try, and only as
    /// often as OpenCode may still write after a turn: a command that is refused for any other reason, or again and again, is a fault.
    ///
    /// # Panics
    /// If it fails, is refused for another reason, or more often.
    pub(crate) fn run_when_settled(&self, arguments: &[&str]) -> Value {
        for _ in 0..=WRITES_AFTER_A_TURN {
            self.wait_settled(arguments);
            let output = self.output(arguments);
            if output.status.code() == Some(DONE) {
                return last_line(&output);
            }
            let told = told(&output);
            assert_eq!(output.status.code(), Some(BUSY), "{arguments:?}: {told}");
            assert_eq!(reasons(&last_line(&output)), ["not-settled"], "{arguments:?}: {told}");
        }
        panic!("{arguments:?}: refused although the sessions had settled {} times", WRITES_AFTER_A_TURN + 1);
    }

    /// Waits until no row of the sessions that `arguments` name, or of their children, has changed for the settling time.
    fn wait_settled(&self, arguments: &[&str]) {
        let named = arguments.windows(2).filter(|pair| pair[0] == "--session");
        let named: Vec<String> = named.map(|pair| format!("'{}'", pair[1])).collect();
        assert!(!named.is_empty(), "{arguments:?} names no session to wait for");
        let named = named.join(", ");
        let family = format!("SELECT id FROM session WHERE id IN ({named}) OR parent_id IN ({named})");
        let tables = [
            ("session", "id"),
            ("message", "session_id"),
            ("part", "session_id"),
            ("session_message", "session_id"),
        ];
        let newest = tables.map(|(table, column)| {
            format!("SELECT max(time_updated) AS t FROM {table} WHERE {column} IN ({family})")
        });
        let age = format!(
            "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) - max(t) FROM ({})",
            newest.join(" UNION ALL ")
        );
        let database = Fixture::reopen(&self.database);
        // The log is part of what the program is to meet.
        database.connection().set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        until("sessions to settle", || database.integer(&age) > SETTLE_MS);
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

/// Why something was kept, each reason once.
fn reasons(result: &Value) -> Vec<&str> {
    let kept = find(result, "kept").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut reasons: Vec<&str> = kept.iter().filter_map(|kept| kept["reason"].as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
