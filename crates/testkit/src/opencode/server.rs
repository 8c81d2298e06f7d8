use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::Home;
use super::http::try_send;
use crate::wait::{LIMIT, until};

/// A running `opencode serve`, in a process group of its own. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    watchdog: Child,
    port: u16,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(super) fn start(home: &Home) -> Self {
        let first = match Self::try_start(home) {
            Ok(server) => return server,
            Err(reason) => reason,
        };
        // Somebody else may have taken the port between its choice and its use.
        Self::try_start(home).unwrap_or_else(|second| {
            panic!("opencode serve: {first}; again: {second}: {}", home.server_log())
        })
    }

    /// The same, but where the server ends instead of answering, says so.
    pub(super) fn try_start(home: &Home) -> Result<Self, String> {
        let port = free_port();
        let log = File::options()
            .append(true)
            .create(true)
            .open(home.server_log_path())
            .expect("open the server's log");
        let child = home
            .command()
            .args(["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()])
            .stdout(log.try_clone().expect("share the server's log"))
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect("start opencode serve");
        let watchdog = watchdog(child.id());
        let mut server = Self { child, watchdog, port };
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = server.child.try_wait().expect("ask for the server's state") {
                return Err(format!("it ended with {status}"));
            }
            let health = try_send(&server.url("/global/health"), "GET", None, Duration::from_secs(5));
            if health.is_ok_and(|answer| answer.status == 200) {
                return Ok(server);
            }
            if Instant::now() > end {
                return Err("it does not answer".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM, and waits for the end.
    pub(super) fn stop(mut self) {
        kill_process(pid_of(&self.child), Signal::TERM).expect("ask the server to end");
        until("the server to end", || self.child.try_wait().expect("ask for the server's state").is_some());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Each fails only where the process has ended already.
        let _group = kill_process_group(pid_of(&self.child), Signal::KILL);
        let _status = self.child.wait();
        let _watchdog = self.watchdog.kill();
        let _status = self.watchdog.wait();
    }
}

/// Kills the process group `leader` once this process is gone, however it ends: then the pipe to the watchdog closes.
fn watchdog(leader: u32) -> Child {
    Command::new("/bin/sh")
        .args(["-c", "read -r _; kill -s KILL -- \"-$0\"", &leader.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("start the watchdog")
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("find a free port");
    listener.local_addr().expect("the port that was given").port()
}
