//! What the unit tests of this crate share: small databases, a look at a folder, and other processes that use a database.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rusqlite::Connection;
use sha2::{Digest, Sha256};

pub(crate) mod killed;
pub(crate) mod paused;

/// Both layouts with the columns that rules use; foreign keys as OpenCode has them.
pub(crate) const SCHEMA: &str = "
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, name text, time_created integer, time_updated integer);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL, title text NOT NULL,
  version text, revert text, time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer,
  time_archived integer, FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL, FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL, FOREIGN KEY (message_id) REFERENCES message(id) ON DELETE CASCADE);
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL, title text,
  version text, revert text, time_created integer NOT NULL, time_updated integer NOT NULL, time_idle integer, time_compacting integer,
  time_archived integer, time_suspended integer, FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE);
CREATE TABLE event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text);
CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL,
  FOREIGN KEY (aggregate_id) REFERENCES event_sequence(aggregate_id) ON DELETE CASCADE);
CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, position integer NOT NULL, PRIMARY KEY (session_id, position),
  FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE);
CREATE TABLE migration (id text PRIMARY KEY, time_completed integer NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX session_parent_idx ON session (parent_id);
INSERT INTO project (id, worktree) VALUES ('prj_a', '/home/user/a');
";

/// A connection that writes as any program would, without the rules of `open`.
#[expect(clippy::disallowed_methods, reason = "stands for a program other than this one")]
pub(crate) fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection
}

/// A database in write-ahead-log mode with [`SCHEMA`] and what `sql` adds; closed cleanly, so that nothing lies beside it.
pub(crate) fn database(path: &Path, sql: &str) {
    let connection = connect(path);
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    assert!(!with_suffix(path, "-wal").exists());
}

/// Damages the database at `path`: two tables of it claim the same pages.
pub(crate) fn share_pages(path: &Path) {
    let db = connect(path);
    db.execute_batch(
        "CREATE TABLE twin_a (x); INSERT INTO twin_a VALUES (1);
         CREATE TABLE twin_b (x); INSERT INTO twin_b VALUES (1);
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'twin_a') WHERE name = 'twin_b';",
    )
    .unwrap();
    db.close().unwrap();
}

/// One session `id` of 1.x with a user message and a text part.
pub(crate) fn v1_session(id: &str) -> String {
    format!(
        "INSERT INTO session (id, project_id, directory, title, time_created, time_updated)
           VALUES ('{id}', 'prj_a', '/home/user/a', 'title {id}', 1000, 2000);
         INSERT INTO message VALUES ('msg_{id}', '{id}', 1000, 1000,
           '{{\"role\":\"user\",\"time\":{{\"created\":1000}},\"agent\":\"build\",\"model\":{{\"providerID\":\"p\",\"modelID\":\"m\"}}}}');
         INSERT INTO part VALUES ('prt_{id}', 'msg_{id}', '{id}', 1000, 1000, '{{\"type\":\"text\",\"text\":\"hello from {id}\"}}');"
    )
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Names, sizes, times and content hashes of everything in a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Folder(BTreeMap<PathBuf, (u64, i64, i64, u32, [u8; 32])>);

impl Folder {
    /// Reads files only where no other connection of this process may hold locks on them.
    pub(crate) fn of(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.map(|path| {
            let found = fs::symlink_metadata(&path).unwrap();
            let content = if found.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
            let hash = Sha256::digest(content).into();
            (path, (found.len(), found.mtime(), found.mtime_nsec(), found.mode(), hash))
        });
        Self(files.collect())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }
}

const CHILD_DATABASE: &str = "HEADWATER_TEST_DATABASE";

/// Another process that has a database open and runs SQL on demand.
pub(crate) struct OtherProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    pub(crate) fn open(path: &Path) -> Self {
        let mut child = test_process("fixture::other_process_entry")
            .env(CHILD_DATABASE, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, input, output };
        assert_eq!(process.answer(), "ready");
        process
    }

    /// Runs one statement on one line and returns "ok" or SQLite's error.
    pub(crate) fn run(&mut self, sql: &str) -> String {
        writeln!(self.input.as_ref().unwrap(), "{}", sql.replace('\n', " ")).unwrap();
        self.answer()
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the other process ended");
            if let Some((_, answer)) = line.trim_end().split_once("answer: ") {
                return answer.to_owned();
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the connection as a program that ends does, and waits for that end.
    pub(crate) fn close(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // Both fail only where the process has ended and been waited for.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The process under [`OtherProcess`]; passes at once when run as an ordinary test.
#[test]
fn other_process_entry() {
    let Some(path) = std::env::var_os(CHILD_DATABASE) else { return };
    let connection = connect(Path::new(&path));
    println!("answer: ready");
    for line in std::io::stdin().lines() {
        match connection.execute_batch(&line.unwrap()) {
            Ok(()) => println!("answer: ok"),
            Err(error) => println!("answer: {error}"),
        }
    }
}

/// This test binary, to run the one test `name`.
pub(crate) fn test_process(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture", "--quiet"]);
    command
}

/// Runs the test `name` with `path` in the environment as a user who is not root; it must be there and pass. Where the tests do not run as root they are such a user already.
pub(crate) fn as_ordinary_user(name: &str, variable: &str, path: &Path) {
    let mut command = test_process(name);
    command.env(variable, path);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534).current_dir("/");
    }
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    // A name that is no test any more would pass as well.
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
