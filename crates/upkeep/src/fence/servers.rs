//! The real probe: processes that hold the file, and what their HTTP servers answer (facts A5, A9, A11).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::probe::{Activity, Holders, ServerProbe};

mod listening;

use listening::Server;

/// Asks the OpenCode servers that hold one database file.
///
/// The question has a price that cannot be avoided: 1.18 keeps the turns of each directory in an *instance* of its own, answers
/// `/session/status` out of it, and makes it where the server has none yet (it loads configuration and plugins, and writes the row of the
/// project). Without the directory only the turns of the server's own are told; `/api/session/active` makes no instance, but does not know
/// the turns of the older routes; and no route lists the instances that exist. A turn of the older routes between two steps leaves no
/// mark in the rows, so it is asked for all the same, and only about the directories of sessions that are about to be written (fact A9).
/// Answers are kept for a moment: a bulk operation asks for every session.
#[derive(Debug)]
pub struct OpenCodeServers {
    database: PathBuf,
    agent: ureq::Agent,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    servers: Option<(Instant, Found)>,
    /// By directory.
    answers: BTreeMap<String, (Instant, Vec<Answer>)>,
    /// Servers that did not answer in time, and when that was.
    silent: BTreeMap<Server, Instant>,
}

/// What the system says about the processes that hold the file.
#[derive(Clone, Debug)]
pub(super) struct Found {
    holders: Holders,
    servers: Vec<Server>,
    /// Whether the ports of some holder cannot be seen.
    has_hidden: bool,
}

/// One server's list of sessions that are not idle, as the text it sent; `None` where it sent none.
type Answer = Option<String>;

/// How long an answer is kept, from the moment in which it was asked for.
const KEPT_FOR: Duration = Duration::from_millis(300);
/// How long a server that did not answer is not asked again, so that it does not cost its timeout for every directory.
const SILENT_FOR: Duration = Duration::from_secs(5);
/// Longest list of sessions that is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Most directories whose answers are kept.
const DIRECTORIES_MAX: usize = 256;

impl OpenCodeServers {
    /// A probe for the database at `database` (symlinks resolved). A server that does not answer within `timeout` counts as
    /// unknown.
    pub fn new(database: &Path, timeout: Duration) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .http_status_as_error(true)
            .proxy(None)
            .build()
            .into();
        Self { database: database.to_owned(), agent, kept: Mutex::default() }
    }

    fn found(&self, kept: &mut Kept) -> Found {
        if let Some((at, found)) = &kept.servers
            && at.elapsed() < KEPT_FOR
        {
            return found.clone();
        }
        let at = Instant::now();
        let found = listening::find(&self.database);
        kept.servers = Some((at, found.clone()));
        found
    }

    fn answers<'k>(&self, kept: &'k mut Kept, servers: &[Server], directory: &str) -> &'k [Answer] {
        let is_fresh = kept.answers.get(directory).is_some_and(|(at, _)| at.elapsed() < KEPT_FOR);
        if !is_fresh {
            if kept.answers.len() >= DIRECTORIES_MAX {
                kept.answers.clear();
            }
            let at = Instant::now();
            let mut answers = Vec::new();
            for server in servers {
                for route in ["/session/status", "/api/session/active"] {
                    answers.push(self.get(&mut kept.silent, *server, route, directory));
                }
            }
            kept.answers.insert(directory.to_owned(), (at, answers));
        }
        kept.answers.get(directory).map_or(&[], |(_, answers)| answers)
    }

    fn get(
        &self,
        silent: &mut BTreeMap<Server, Instant>,
        server: Server,
        route: &str,
        directory: &str,
    ) -> Answer {
        if silent.get(&server).is_some_and(|since| since.elapsed() < SILENT_FOR) {
            return None;
        }
        let request =
            self.agent.get(format!("http://{}{route}", server.address)).query("directory", directory);
        let mut response = match request.call() {
            Ok(response) => response,
            Err(ureq::Error::StatusCode(_)) => return None,
            Err(_) => {
                silent.insert(server, Instant::now());
                return None;
            }
        };
        // A listing of sessions is JSON; anything else (the web page of an unknown route) says nothing.
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().ok()?;
        serde_json::from_str::<serde::de::IgnoredAny>(&text).ok()?;
        Some(text)
    }
}

impl ServerProbe for OpenCodeServers {
    fn holders(&self) -> Holders {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.found(&mut kept).holders
    }

    fn activity(&self, session: &str, directory: &str) -> Activity {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.found(&mut kept);
        let answers = self.answers(&mut kept, &found.servers, directory);
        if answers.iter().flatten().any(|text| names(text, session)) {
            return Activity::Busy;
        }
        // The second route exists in some versions only: one answer per server is enough.
        let is_answered = |pair: &[Answer]| pair.first().is_some_and(Option::is_some);
        let is_complete = !found.has_hidden && answers.chunks(2).all(is_answered);
        if is_complete && !found.servers.is_empty() { Activity::Idle } else { Activity::Unknown }
    }
}

/// Whether a list of sessions that are not idle names `session`: as a member name of a map, as an element, or as the id of an object.
/// Ids are letters, digits and underscores and need no escape in JSON.
fn names(text: &str, session: &str) -> bool {
    text.contains(&format!("\"{session}\""))
}

#[cfg(test)]
mod tests;
