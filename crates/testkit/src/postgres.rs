//! A PostgreSQL cluster of the tests' own: in a temporary folder, on a socket in it, gone with the test.

mod proxy;

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::{cache, wait};

pub use proxy::{Cut, Proxy};

/// Names the folder of the socket of a cluster that several processes share. Without it each process starts one of its own.
pub const SHARED: &str = "HEADWATER_TEST_POSTGRES";

/// The account that Debian's packages make; a server refuses to run as root.
const ACCOUNT: &str = "postgres";

/// What is run here.
const PROGRAMS: [&str; 5] = ["createdb", "initdb", "pg_ctl", "pg_isready", "postgres"];

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    socket: PathBuf,
    programs: PathBuf,
    own: Option<Server>,
    databases: AtomicU32,
}

#[derive(Debug)]
struct Server {
    folder: TempDir,
    child: Child,
    durability: Durability,
}

/// Whether commits wait for the disk.
#[derive(Clone, Copy, Debug)]
enum Durability {
    /// Nothing of a test outlives it, so nothing has to reach the disk.
    None,
    Synced,
}

impl Durability {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::None => &["fsync=off", "synchronous_commit=off", "full_page_writes=off"],
            Self::Synced => &[],
        }
    }
}

impl Cluster {
    /// The shared cluster where there is one, else one that is started here and ends with this value.
    pub fn start() -> Self {
        if let Some(socket) = std::env::var_os(SHARED) {
            let databases = AtomicU32::new(0);
            return Self { socket: socket.into(), programs: programs(), own: None, databases };
        }
        Self::alone()
    }

    /// A cluster that nobody shares, and that may be stopped.
    pub fn alone() -> Self {
        Self::with(Durability::None)
    }

    /// As [`Cluster::alone`], with commits that wait for the disk, as servers have it where nobody changed that.
    pub fn durable() -> Self {
        Self::with(Durability::Synced)
    }

    fn with(durability: Durability) -> Self {
        let programs = programs();
        let server = Server::start(&programs, durability);
        let socket = server.folder.path().to_owned();
        Self { socket, programs, own: Some(server), databases: AtomicU32::new(0) }
    }

    /// The folder of its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Makes an empty database, and answers with its address. Its collation is not that of bytes.
    pub fn create_database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let mut create = Command::new(self.programs.join("createdb"));
        create.arg("--host").arg(&self.socket).args([
            "--username",
            ACCOUNT,
            "--template",
            "template0",
            &name,
        ]);
        output(&mut create);
        format!("host={} user={ACCOUNT} dbname={name}", self.socket.display())
    }

    /// Stops the cluster as a crash would, and starts it again on what is on the disk. Only for a cluster of one's own.
    ///
    /// # Panics
    /// Where the cluster is shared.
    pub fn crash_and_restart(&mut self) {
        let server = self.own.as_mut().expect("a shared cluster is not stopped");
        server.stop(&self.programs, "immediate");
        server.child = spawn(&self.programs, server.folder.path(), server.durability);
        ready(&self.programs, server.folder.path());
    }
}

impl Server {
    fn start(programs: &Path, durability: Durability) -> Self {
        let folder = account_folder();
        copy(&initialised(programs), &folder.path().join("data"));
        let child = spawn(programs, folder.path(), durability);
        ready(programs, folder.path());
        Self { folder, child, durability }
    }

    fn stop(&mut self, programs: &Path, mode: &str) {
        let mut stop = as_account(&programs.join("pg_ctl"));
        stop.arg("--pgdata").arg(self.folder.path().join("data")).args(["stop", "--silent", "--mode", mode]);
        // It may have ended already.
        drop(stop.stderr(Stdio::null()).stdout(Stdio::null()).status());
        drop(self.child.wait());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(server) = &mut self.own {
            server.stop(&self.programs, "immediate");
        }
    }
}

/// A cluster that nobody has used, made once for all tests: to make one takes longer than most of them.
fn initialised(programs: &Path) -> PathBuf {
    let cache = cache::folder();
    fs::create_dir_all(&cache).expect("the tests' cache");
    let lock = fs::File::create(cache.join("postgres.lock")).expect("the lock of the tests' cache");
    lock.lock().expect("the lock of the tests' cache");
    let version = output(Command::new(programs.join("postgres")).arg("--version"));
    let name: String = version.chars().filter(char::is_ascii_alphanumeric).collect();
    let made = cache.join(name);
    if !made.exists() {
        let folder = account_folder();
        let data = folder.path().join("data");
        let mut initdb = as_account(&programs.join("initdb"));
        initdb.arg("--pgdata").arg(&data);
        initdb.args(["--username", ACCOUNT, "--auth", "trust", "--no-sync", "--encoding", "UTF8"]);
        // A collation that orders `_x` before `A2`: nothing may depend on the database's.
        initdb.args(["--locale-provider", "icu", "--icu-locale", "en-US", "--locale", "C.UTF-8"]);
        output(&mut initdb);
        let partial = made.with_extension("partial");
        drop(fs::remove_dir_all(&partial));
        copy(&data, &partial);
        fs::rename(&partial, &made).expect("the tests' cache");
    }
    made
}

fn copy(from: &Path, to: &Path) {
    output(Command::new("cp").arg("--archive").arg(from).arg(to));
}

/// A temporary folder that belongs to the account of the server.
fn account_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("headwater-pg-").tempdir().expect("a folder for PostgreSQL");
    if is_root() {
        let account =
            |flag: &str| output(Command::new("id").args([flag, ACCOUNT])).trim().parse().expect("a number");
        chown(folder.path(), Some(account("-u")), Some(account("-g")))
            .expect("a folder of the account `postgres`");
    }
    folder
}

fn spawn(programs: &Path, folder: &Path, durability: Durability) -> Child {
    let log = fs::File::create(folder.join("server.log")).expect("PostgreSQL's log");
    let mut server = as_account(&programs.join("postgres"));
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    for setting in
        ["listen_addresses=", "max_connections=200", "shared_buffers=32MB", "deadlock_timeout=50ms"]
    {
        server.args(["-c", setting]);
    }
    for setting in durability.settings() {
        server.args(["-c", setting]);
    }
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("PostgreSQL starts")
}

fn ready(programs: &Path, folder: &Path) {
    wait::until("PostgreSQL's answer (its log is beside its data)", || {
        let mut ask = Command::new(programs.join("pg_isready"));
        ask.arg("--quiet").arg("--host").arg(folder).args(["--username", ACCOUNT]);
        ask.status().is_ok_and(|status| status.success())
    });
}

/// As root the account of the packages, which the server insists on; it ends with the test that started it.
fn as_account(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if is_root() {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]);
    }
    // The account may not enter the folder of the test.
    command.current_dir("/").arg("--").arg(program);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where the server's programs are: Debian keeps them out of PATH.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let whole = |folder: &PathBuf| PROGRAMS.iter().all(|program| folder.join(program).is_file());
    folders
        .into_iter()
        .find(whole)
        .expect("PostgreSQL's server programs (Debian, Ubuntu: apt-get install postgresql)")
}

/// What a program prints.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
