//! The real probe: processes that hold the file, and what their HTTP servers answer (facts A5, A9, A11).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
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
/// Answers are kept for a moment, each server's for itself: a bulk operation asks for every session. All servers are asked at the same
/// time, so that the age of what is known is the time of the slowest and not the sum of all.
#[derive(Debug)]
pub struct OpenCodeServers {
    database: PathBuf,
    agent: ureq::Agent,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    servers: Option<(Instant, Found)>,
    /// By directory and server, each with the moment in which it was asked for.
    answers: BTreeMap<String, BTreeMap<Server, (Instant, Pair)>>,
    /// Directories that a server was asked about before, and so has an instance for.
    warm: BTreeSet<(Server, String)>,
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
/// One server's answers to the two [`ROUTES`].
type Pair = [Answer; 2];

/// Where a server lists its sessions that are not idle. The second exists in some versions only.
const ROUTES: [&str; 2] = ["/session/status", "/api/session/active"];

/// How long an answer is kept, from the moment in which it was asked for.
const KEPT_FOR: Duration = Duration::from_millis(300);
/// How long a server that did not answer is not asked again, so that it does not cost its timeout for every directory.
const SILENT_FOR: Duration = Duration::from_secs(5);
/// Longest list of sessions that is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Most directories whose answers are kept, and most pairs of server and directory that are known to be warm.
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

    /// What every server says of `directory`; those whose answer is not kept are asked now.
    fn answers(&self, kept: &mut Kept, servers: &[Server], directory: &str) -> Vec<Pair> {
        if kept.answers.len() >= DIRECTORIES_MAX && !kept.answers.contains_key(directory) {
            kept.answers.clear();
        }
        let known = kept.answers.entry(directory.to_owned()).or_default();
        known.retain(|server, (at, _)| servers.contains(server) && at.elapsed() < KEPT_FOR);
        let open: Vec<Server> =
            servers.iter().copied().filter(|server| !known.contains_key(server)).collect();
        let asked: Vec<_> = open
            .into_iter()
            .map(|server| {
                let is_silent = kept.silent.get(&server).is_some_and(|since| since.elapsed() < SILENT_FOR);
                (server, is_silent)
            })
            .collect();
        let told = self.ask_all(&asked, directory);
        for (server, at, pair) in told {
            match pair {
                Ok(pair) => known.insert(server, (at, pair)),
                Err(Silent { is_news }) => {
                    if is_news {
                        kept.silent.insert(server, Instant::now());
                    }
                    known.insert(server, (at, Pair::default()))
                }
            };
        }
        known.values().map(|(_, pair)| pair.clone()).collect()
    }

    /// Asks the servers that are not known to be silent, all at the same time.
    fn ask_all(
        &self,
        servers: &[(Server, bool)],
        directory: &str,
    ) -> Vec<(Server, Instant, Result<Pair, Silent>)> {
        thread::scope(|scope| {
            let asking: Vec<_> = servers
                .iter()
                .map(|&(server, is_silent)| {
                    let at = Instant::now();
                    let asking = (!is_silent).then(|| scope.spawn(move || self.ask(server, directory)));
                    (server, at, asking)
                })
                .collect();
            let told = asking.into_iter().map(|(server, at, asking)| {
                let pair = match asking {
                    Some(asking) => asking.join().unwrap_or(Err(Silent { is_news: true })),
                    None => Err(Silent { is_news: false }),
                };
                (server, at, pair)
            });
            told.collect()
        })
    }

    fn ask(&self, server: Server, directory: &str) -> Result<Pair, Silent> {
        let [first, second] = ROUTES;
        let first = self.get(server, first, directory)?;
        // What the first route said counts also where the second is not answered in time.
        let second = self.get(server, second, directory).unwrap_or_default();
        Ok([first, second])
    }

    fn get(&self, server: Server, route: &str, directory: &str) -> Result<Answer, Silent> {
        let request =
            self.agent.get(format!("http://{}{route}", server.address)).query("directory", directory);
        let mut response = match request.call() {
            Ok(response) => response,
            Err(ureq::Error::StatusCode(_)) => return Ok(None),
            Err(_) => return Err(Silent { is_news: true }),
        };
        // A listing of sessions is JSON; anything else (the web page of an unknown route) says nothing.
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let is_json = |text: &String| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        Ok(text.ok().filter(is_json))
    }
}

/// A server that does not answer in time.
struct Silent {
    /// Whether it was asked now, and not only passed over because it was silent a moment ago.
    is_news: bool,
}

impl ServerProbe for OpenCodeServers {
    fn holders(&self) -> Holders {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.found(&mut kept).holders
    }

    fn warm(&self, directory: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = self.found(&mut kept).servers;
        let is_warm = servers.iter().all(|server| kept.warm.contains(&(*server, directory.to_owned())));
        if is_warm {
            return;
        }
        self.answers(&mut kept, &servers, directory);
        if kept.warm.len() + servers.len() > DIRECTORIES_MAX {
            kept.warm.clear();
        }
        kept.warm.extend(servers.into_iter().map(|server| (server, directory.to_owned())));
    }

    fn activity(&self, session: &str, directory: &str) -> Activity {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.found(&mut kept);
        let answers = self.answers(&mut kept, &found.servers, directory);
        if answers.iter().flatten().flatten().any(|text| names(text, session)) {
            return Activity::Busy;
        }
        // The second route exists in some versions only: one answer per server is enough.
        let is_complete = !found.has_hidden && answers.iter().all(|[first, _]| first.is_some());
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
