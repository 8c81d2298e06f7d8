//! A way to a cluster that can be cut at any request.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tempfile::TempDir;

use super::Cluster;

/// The name of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// Where a connection is cut. Requests are counted from 0 over all connections, each up to its `Sync` or as one simple query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server does not get this request whole.
    Before(usize),
    /// The server has answered this request; nobody hears of it.
    After(usize),
}

/// A socket in front of that of a cluster.
#[derive(Debug)]
pub struct Proxy {
    folder: TempDir,
    plan: Arc<Mutex<Plan>>,
    ended: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Plan {
    requests: usize,
    cut: Option<Cut>,
}

impl Proxy {
    /// A proxy in front of `cluster`; it ends with this value.
    pub fn start(cluster: &Cluster) -> Self {
        let folder =
            tempfile::Builder::new().prefix("headwater-pg-").tempdir().expect("a folder for a socket");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a socket");
        let proxy = Self { folder, plan: Arc::default(), ended: Arc::default() };
        let (plan, ended) = (Arc::clone(&proxy.plan), Arc::clone(&proxy.ended));
        let server = cluster.socket().join(SOCKET);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                drop(connect(&client, &server, &plan));
            }
        });
        proxy
    }

    /// The address of a database of the cluster, by way of this proxy.
    pub fn address(&self, direct: &str) -> String {
        let (_, rest) = direct.split_once(' ').expect("an address of several options");
        format!("host={} {rest}", self.folder.path().display())
    }

    /// Counts requests from 0 again, and cuts the connection that sends the one named.
    pub fn cut(&self, cut: Option<Cut>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Plan { requests: 0, cut };
    }

    /// How many requests there were since.
    pub fn requests(&self) -> usize {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).requests
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        drop(UnixStream::connect(self.folder.path().join(SOCKET)));
    }
}

/// Serves one client on two threads, which end with either side.
fn connect(client: &UnixStream, server: &PathBuf, plan: &Arc<Mutex<Plan>>) -> io::Result<()> {
    let up = Way { from: client.try_clone()?, to: UnixStream::connect(server)? };
    let down = Way { from: up.to.try_clone()?, to: client.try_clone()? };
    // Answers that are heard: the greeting, and one for each request up to here.
    let heard = Arc::new(AtomicUsize::new(usize::MAX));
    let (plan, limit) = (Arc::clone(plan), Arc::clone(&heard));
    thread::spawn(move || {
        drop(up.requests(&plan, &limit));
        up.close();
    });
    thread::spawn(move || {
        drop(down.answers(&heard));
        down.close();
    });
    Ok(())
}

struct Way {
    from: UnixStream,
    to: UnixStream,
}

impl Way {
    fn requests(&self, plan: &Mutex<Plan>, heard: &AtomicUsize) -> io::Result<()> {
        let (mut from, mut to) = (&self.from, &self.to);
        to.write_all(&frame(&mut from, 0)?)?;
        let mut sent = 0;
        loop {
            let message = frame(&mut from, 1)?;
            if matches!(message[0], b'Q' | b'S') {
                sent += 1;
                let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
                let number = plan.requests;
                plan.requests += 1;
                match plan.cut {
                    Some(Cut::Before(cut)) if cut == number => return Ok(()),
                    Some(Cut::After(cut)) if cut == number => heard.store(sent, Ordering::SeqCst),
                    _ => {}
                }
            }
            to.write_all(&message)?;
        }
    }

    fn answers(&self, heard: &AtomicUsize) -> io::Result<()> {
        let (mut from, mut to) = (&self.from, &self.to);
        let mut ready = 0;
        loop {
            let message = frame(&mut from, 1)?;
            let is_heard = ready < heard.load(Ordering::SeqCst);
            if is_heard {
                to.write_all(&message)?;
            }
            if message[0] == b'Z' {
                if !is_heard {
                    return Ok(());
                }
                ready += 1;
            }
        }
    }

    fn close(&self) {
        drop(self.from.shutdown(Shutdown::Both));
        drop(self.to.shutdown(Shutdown::Both));
    }
}

/// A message: `kind` bytes that say what it is, four that say how long it is, themselves included, and the rest.
fn frame(from: &mut &UnixStream, kind: usize) -> io::Result<Vec<u8>> {
    let mut message = vec![0; kind + 4];
    from.read_exact(&mut message)?;
    let length = u32::from_be_bytes(message[kind..].try_into().map_err(io::Error::other)?) as usize;
    message.resize(kind + length, 0);
    from.read_exact(&mut message[kind + 4..])?;
    Ok(message)
}
