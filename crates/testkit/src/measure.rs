//! What a command costs: peak memory, bytes read and written, and whether it lives within a memory limit.
//!
//! The limit is `RLIMIT_DATA`, set by `prlimit` of util-linux: on Linux it counts private writable memory (heap, anonymous mappings,
//! thread stacks), needs no privilege, and makes the allocation fail that goes beyond it. The alternatives were worse:
//! `RLIMIT_AS` also counts the mapped database and would refuse what costs no memory, and a cgroup needs a folder that may be
//! written, which containers seldom have.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::program;

/// What a finished command has done.
#[derive(Debug)]
pub struct Measured {
    /// Its exit status and output.
    pub output: Output,
    /// Most resident memory in bytes, mapped files included (`VmHWM`). It is looked at every millisecond: what grows in the last one
    /// before the end can be missed.
    pub peak_bytes: u64,
    /// Bytes that passed through its read calls (`rchar` of `/proc/PID/io`), from the page cache or not. Mapped pages do not count.
    pub read_bytes: u64,
    /// Bytes that passed through its write calls (`wchar`).
    pub written_bytes: u64,
}

/// A command that may not have more than `bytes` of private memory.
pub fn limited(program: &Path, bytes: u64) -> Command {
    let mut command = Command::new(program::find("prlimit", "package util-linux on Debian and Ubuntu"));
    command.arg(format!("--data={bytes}:{bytes}")).arg(program);
    command
}

/// A command none of whose files may be written beyond `bytes`, as on a full disk: the write fails inside whatever library makes it.
pub fn with_file_limit(program: &Path, bytes: u64) -> Command {
    let mut command = Command::new(program::find("prlimit", "package util-linux on Debian and Ubuntu"));
    command.arg(format!("--fsize={bytes}:{bytes}")).arg(program);
    command
}

/// Runs a command to its end and measures it. Its output is captured; its input is empty.
pub fn run(command: &mut Command) -> Measured {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start a command");
    let stdout = collect(child.stdout.take().expect("the command's output"));
    let stderr = collect(child.stderr.take().expect("the command's errors"));
    let pid = Pid::from_child(&child);
    let mut peak_bytes = 0;
    // Not reaped yet: a process that has ended keeps its input and output counters until then, but not its memory.
    while waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG)
        .expect("ask for the command's state")
        .is_none()
    {
        if let Some(kib) = field(pid, "status", "VmHWM:") {
            peak_bytes = peak_bytes.max(kib * 1024);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let read_bytes = field(pid, "io", "rchar:").expect("what the command read");
    let written_bytes = field(pid, "io", "wchar:").expect("what the command wrote");
    let status = child.wait().expect("the command's status");
    let output = Output {
        status,
        stdout: stdout.join().expect("read the command's output"),
        stderr: stderr.join().expect("read the command's errors"),
    };
    Measured { output, peak_bytes, read_bytes, written_bytes }
}

fn collect(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("read from a pipe");
        bytes
    })
}

/// The number behind `name` in `/proc/PID/FILE`.
fn field(pid: Pid, file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/{file}", pid.as_raw_nonzero())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shell(command: &mut Command, script: &str) -> Measured {
        run(command.args(["-c", script]))
    }

    #[test]
    fn bytes_read_and_written_are_counted_to_the_end() {
        let measured = shell(&mut Command::new("/bin/sh"), "exec head -c 3000000 /dev/zero");
        assert_eq!(measured.output.stdout.len(), 3_000_000);
        assert!((3_000_000..3_400_000).contains(&measured.read_bytes), "{}", measured.read_bytes);
        assert!((3_000_000..3_400_000).contains(&measured.written_bytes), "{}", measured.written_bytes);
    }

    #[test]
    fn a_limit_ends_what_needs_more_and_not_what_needs_less() {
        let sqlite3 = program::sqlite3();
        let take = |mib: u64, limit: u64| {
            run(limited(&sqlite3, limit * MIB)
                .arg(":memory:")
                .arg(format!("SELECT length(zeroblob({mib} * 1048576) || 'x');")))
        };
        let within = take(8, 100);
        assert!(within.output.status.success(), "{:?}", within.output);
        let beyond = take(200, 100);
        assert!(!beyond.output.status.success(), "{:?}", beyond.output);
        let free = take(200, 2000);
        assert!(free.peak_bytes > 150 * MIB && free.output.status.success(), "{}", free.peak_bytes);
    }
}
