//! A second process with the same database open: the SQLite shell, driven line by line.
//!
//! A reader or writer that must be seen by file locks has to be another process: SQLite's POSIX locks belong to a process, and
//! closing any descriptor of the file drops them all.

use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::program;

/// Ends the answer of one [`Shell::run`].
const MARK: &str = "--headwater-testkit-mark--";

/// A running `sqlite3`. It is killed on drop, without a checkpoint: a log that it holds stays.
#[derive(Debug)]
pub struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<PipeReader>,
}

impl Shell {
    /// Starts the shell on `database` and runs a statement, so that the file is really open.
    pub fn open(database: &Path) -> Self {
        let (reader, writer) = pipe().expect("make a pipe");
        let mut child = Command::new(program::sqlite3())
            .args(["-batch", "-list"])
            .arg(database)
            .stdin(Stdio::piped())
            .stderr(writer.try_clone().expect("share a pipe"))
            .stdout(writer)
            .spawn()
            .expect("start sqlite3");
        let input = child.stdin.take().expect("the shell's input");
        let mut shell = Self { child, input, output: BufReader::new(reader) };
        let version = shell.run("SELECT count(*) >= 0 FROM sqlite_schema;");
        assert_eq!(version, "1\n", "open the database in the shell");
        shell
    }

    /// Runs statements or dot commands and waits until they are done. Returns what they print, errors included.
    pub fn run(&mut self, statements: &str) -> String {
        writeln!(self.input, "{statements}\n.print {MARK}").expect("write to sqlite3");
        let mut answer = String::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("read from sqlite3");
            assert_ne!(read, 0, "sqlite3 ended: {answer}");
            if line.trim_end() == MARK {
                return answer;
            }
            answer.push_str(&line);
        }
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Fails only where the process has ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, Layout, Session};

    #[test]
    fn a_transaction_in_the_shell_keeps_other_writers_out() {
        let folder = tempfile::tempdir().unwrap();
        let db = Fixture::create(folder.path().join("a b.db"), Layout::ReducedV1);
        let mut shell = Shell::open(db.path());
        assert_eq!(shell.run("BEGIN IMMEDIATE;"), "");
        db.connection().busy_timeout(std::time::Duration::ZERO).unwrap();
        assert!(db.connection().execute_batch("BEGIN IMMEDIATE").is_err());
        assert!(shell.run("SELECT x FROM nowhere;").contains("no such table"));
        drop(shell);
        db.session(&Session::named("ses_a"));
    }
}
