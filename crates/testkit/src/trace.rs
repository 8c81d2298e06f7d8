//! What a program asks of the file system, in order: what a test needs that asserts which sync comes before which change.
//!
//! An observer that is told after a step knows that the step is over, not what it did. `strace` sees the calls themselves.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program;

/// Calls that are written down. A mark before a name lets `strace` pass over what an architecture does not have.
const CALLS: &str = "trace=openat,?open,close,write,pwrite64,pwritev,ftruncate,fallocate,fsync,fdatasync,?rename,?renameat,renameat2,\
                     ?unlink,unlinkat,fcntl,?chmod,fchmod,fchmodat,fchown,fsetxattr";

/// One call of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `fsync`, `renameat2`, ...
    pub name: String,
    /// The path of the descriptor that it is about, or the first path that it is given. A file that has lost its name has the last one
    /// that it had.
    pub file: String,
    /// All arguments as `strace` prints them.
    pub arguments: String,
    /// Whether it succeeded.
    pub is_ok: bool,
    begun: usize,
    ended: usize,
}

impl Call {
    /// Whether this call had returned when `other` began.
    pub fn is_before(&self, other: &Self) -> bool {
        self.ended < other.begun
    }

    /// Whether it is a successful `fsync` or `fdatasync`.
    pub fn is_sync(&self) -> bool {
        self.is_ok && matches!(self.name.as_str(), "fsync" | "fdatasync")
    }

    /// Whether it changes bytes, length or attributes of its file.
    pub fn is_write(&self) -> bool {
        let names = [
            "write",
            "pwrite64",
            "pwritev",
            "ftruncate",
            "fallocate",
            "chmod",
            "fchmod",
            "fchmodat",
            "fchown",
            "fsetxattr",
        ];
        self.is_ok && names.contains(&self.name.as_str())
    }

    /// Whether it gives or takes a name, or exchanges two.
    pub fn is_rename(&self) -> bool {
        self.is_ok && self.name.starts_with("rename")
    }

    /// Whether it takes a name away.
    pub fn is_unlink(&self) -> bool {
        self.is_ok && self.name.starts_with("unlink")
    }

    /// Whether it gives a lock of `fcntl(2)` back, or closes a descriptor, which gives back every lock on the file.
    pub fn is_unlock(&self) -> bool {
        self.is_ok
            && (self.name == "close"
                || self.name == "fcntl"
                    && self.arguments.contains("F_SETLK,")
                    && self.arguments.contains("l_type=F_UNLCK"))
    }
}

/// The calls of a program, by their beginning.
#[derive(Clone, Debug, Default)]
pub struct Trace(pub Vec<Call>);

impl Trace {
    /// The first call for which `is_it` holds.
    ///
    /// # Panics
    /// If there is none; `what` says what was looked for.
    pub fn first(&self, what: &str, is_it: impl Fn(&Call) -> bool) -> &Call {
        self.0.iter().find(|call| is_it(call)).unwrap_or_else(|| panic!("no {what} in\n{self}"))
    }

    /// The last call for which `is_it` holds.
    ///
    /// # Panics
    /// If there is none; `what` says what was looked for.
    pub fn last(&self, what: &str, is_it: impl Fn(&Call) -> bool) -> &Call {
        self.0.iter().rev().find(|call| is_it(call)).unwrap_or_else(|| panic!("no {what} in\n{self}"))
    }

    /// Asserts that a call for which `is_it` holds lies wholly between `one` and `other`.
    ///
    /// # Panics
    /// If there is none; `what` says what was looked for.
    pub fn assert_between(&self, what: &str, one: &Call, other: &Call, is_it: impl Fn(&Call) -> bool) {
        let found = self.0.iter().any(|call| one.is_before(call) && call.is_before(other) && is_it(call));
        assert!(found, "no {what} between {one:?} and {other:?} in\n{self}");
    }

    /// Asserts that no call for which `is_it` holds lies even in part between `one` and `other`.
    ///
    /// # Panics
    /// If there is one.
    pub fn assert_none_between(&self, what: &str, one: &Call, other: &Call, is_it: impl Fn(&Call) -> bool) {
        let found =
            self.0.iter().find(|call| one.begun < call.ended && call.begun < other.begun && is_it(call));
        assert!(found.is_none(), "{what} between {one:?} and {other:?}: {found:?} in\n{self}");
    }

    fn read(text: &str) -> Self {
        let (mut calls, mut open) = (Vec::new(), HashMap::new());
        for (at, line) in text.lines().enumerate() {
            let (thread, rest) = line.split_once(' ').unwrap_or(("", line));
            let rest = rest.trim_start();
            if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
                open.insert(thread, (at, begun));
            } else if let Some((_, end)) =
                rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
            {
                let (begun, head) = open.remove(thread).expect("a call that was begun");
                calls.extend(call(&format!("{head}{end}"), begun, at));
            } else {
                calls.extend(call(rest, at, at));
            }
        }
        calls.sort_by_key(|call| call.begun);
        Self(calls)
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for call in &self.0 {
            writeln!(f, "{} {} {}", call.name, call.arguments, if call.is_ok { "" } else { "(failed)" })?;
        }
        Ok(())
    }
}

/// Runs `program` in `folder` as `prepare` completes it, and answers what it asked of the files there, with its output.
///
/// # Panics
/// If `strace` is not there or may not trace.
pub fn run(program: &Path, folder: &Path, prepare: impl FnOnce(&mut Command)) -> (Trace, Output) {
    let written = tempfile::NamedTempFile::new().expect("a file for the trace");
    let mut command = Command::new(program::find("strace", "package strace on Debian and Ubuntu"));
    command.args(["-f", "-y", "-s", "0", "-e", CALLS, "-o"]).arg(written.path()).arg(program);
    prepare(command.current_dir(folder).stdin(Stdio::null()));
    let output = command.output().expect("start strace");
    let text = std::fs::read_to_string(written.path()).expect("read the trace");
    let mut trace = Trace::read(&text);
    assert!(
        trace.0.iter().any(|call| call.name == "close"),
        "strace cannot trace here: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    for call in trace.0.iter_mut().filter(|call| !call.file.is_empty()) {
        // A name that is relative is meant from there.
        folder.join(&call.file).to_str().expect("a path in UTF-8").clone_into(&mut call.file);
    }
    trace.0.retain(|call| Path::new(&call.file).starts_with(folder));
    (trace, output)
}

/// One line, whole: `fsync(5</a/b>) = 0`.
fn call(line: &str, begun: usize, ended: usize) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, answer) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?.to_owned();
    let is_ok = !answer.starts_with('-') && !answer.starts_with('?');
    Some(Call { name: name.to_owned(), file: file(&arguments), arguments, is_ok, begun, ended })
}

/// The path of the descriptor that stands first, else the first quoted path.
fn file(arguments: &str) -> String {
    let quoted = |text: &str| text.split('"').nth(1).map(str::to_owned);
    if arguments.starts_with(|first: char| first.is_ascii_digit()) {
        let path = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
        return path.map(|(path, _)| path.to_owned()).unwrap_or_default();
    }
    quoted(arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_several_threads_are_put_together() {
        let text = "\
7 openat(AT_FDCWD</a>, \"/a/b\", O_RDWR) = 3</a/b>
8 fsync(3</a/b> <unfinished ...>
7 pwrite64(3</a/b>, \"\"..., 10, 0) = 10
8 <... fsync resumed>)                    = 0
7 unlink(\"/a/c\") = -1 ENOENT (No such file or directory)
7 fcntl(3</a/b>(deleted), F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0
7 renameat2(AT_FDCWD</a>, \"/a/x\", AT_FDCWD</a>, \"/a/b\", RENAME_EXCHANGE) = 0
7 +++ exited with 0 +++
";
        let trace = Trace::read(text);
        let names: Vec<_> = trace.0.iter().map(|call| (&call.name[..], &call.file[..], call.is_ok)).collect();
        let wanted = [
            ("openat", "/a/b", true),
            ("fsync", "/a/b", true),
            ("pwrite64", "/a/b", true),
            ("unlink", "/a/c", false),
            ("fcntl", "/a/b", true),
            ("renameat2", "/a/x", true),
        ];
        assert_eq!(names, wanted);
        let (sync, write) = (&trace.0[1], &trace.0[2]);
        assert!(!sync.is_before(write) && !write.is_before(sync) && trace.0[0].is_before(sync));
        assert!(trace.0[4].is_unlock() && sync.is_sync() && write.is_write() && !trace.0[3].is_unlink());
    }

    #[test]
    fn the_calls_of_a_program_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let (trace, output) = run(Path::new("/bin/sh"), folder.path(), |command| {
            command.args(["-c", "echo text > \"$0\"; rm \"$0\""]).arg(&path);
        });
        assert!(output.status.success());
        let (write, gone) = (trace.first("write", Call::is_write), trace.first("rm", Call::is_unlink));
        assert!(write.is_before(gone) && gone.file == path.to_str().unwrap(), "{trace}");
    }
}
