//! What the tests need besides the Rust toolchain.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::stage::{exists, exists_in, stage};

/// A program, and the package that has it on Debian and Ubuntu.
struct Program {
    name: &'static str,
    package: &'static str,
    why: &'static str,
}

const PROGRAMS: [Program; 12] = [
    Program { name: "cc", package: "build-essential", why: "compiles the bundled SQLite" },
    Program { name: "git", package: "git", why: "OpenCode's projects are git repositories" },
    Program { name: "sqlite3", package: "sqlite3", why: "an independent reader of the databases" },
    Program {
        name: "node",
        package: "nodejs",
        why: "computes content revisions in JavaScript, version 18 or newer",
    },
    Program { name: "npm", package: "npm", why: "fetches the real OpenCode (opencode-linux-x64)" },
    Program { name: "setpriv", package: "util-linux", why: "runs the program without permissions" },
    Program { name: "prlimit", package: "util-linux", why: "runs the program with little memory" },
    Program { name: "unshare", package: "util-linux", why: "runs the program on a small disk" },
    Program { name: "script", package: "bsdutils", why: "runs the program on a terminal" },
    Program { name: "strace", package: "strace", why: "sees which sync comes before which change" },
    Program {
        name: "initdb",
        package: "postgresql",
        why: "makes the cluster that the conversation store is tested on",
    },
    Program { name: "kill", package: "procps", why: "interrupts the program" },
];

/// Makes sure that every program is there: on Debian and Ubuntu as root by installing it, elsewhere by saying what to install.
pub(crate) fn ensure() -> Result<()> {
    let absent = missing(&path());
    if absent.is_empty() {
        return Ok(());
    }
    let installed = if is_debian() && is_root() && exists("apt-get") { install(&absent) } else { Ok(()) };
    let absent = missing(&path());
    if absent.is_empty() {
        return Ok(());
    }
    let refused = installed.err().map(|error| format!("{error:#}\n")).unwrap_or_default();
    bail!("{refused}the tests need programs that are not on PATH:\n{}{}", list(&absent), advice(&absent))
}

fn install(absent: &[&Program]) -> Result<()> {
    let packages = absent.iter().map(|program| program.package);
    let mut update = Command::new("apt-get");
    stage("package lists", update.args(["-qq", "update"]))?;
    let mut install = Command::new("apt-get");
    install.args(["-qq", "install", "--yes", "--no-install-recommends"]).args(packages);
    stage("packages", install.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// PATH, and behind it where Debian keeps PostgreSQL's server.
fn path() -> OsString {
    let set = std::env::var_os("PATH").unwrap_or_default();
    let servers = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = std::env::split_paths(&set).chain(servers.map(|version| version.path().join("bin")));
    std::env::join_paths(folders).unwrap_or(set)
}

fn missing(path: &OsStr) -> Vec<&'static Program> {
    PROGRAMS.iter().filter(|program| !exists_in(path, program.name)).collect()
}

fn list(absent: &[&Program]) -> String {
    let lines: Vec<_> =
        absent.iter().map(|program| format!("  {:8} {}\n", program.name, program.why)).collect();
    lines.concat()
}

fn advice(absent: &[&Program]) -> String {
    let mut packages: Vec<_> = absent.iter().map(|program| program.package).collect();
    packages.dedup();
    format!(
        "Debian, Ubuntu: sudo apt-get install {}\nFedora, Arch, macOS: the packages that hold the programs named above",
        packages.join(" ")
    )
}

fn is_debian() -> bool {
    fs::metadata("/etc/debian_version").is_ok()
}

fn is_root() -> bool {
    // The owner of this process's own folder in /proc; no call of the system without unsafe code tells it in std.
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_that_is_hidden_is_named_with_its_package_and_reason() {
        let path = path();
        assert_eq!(missing(&path).len(), 0, "{}", list(&missing(&path)));
        assert_eq!(missing(OsStr::new("")).len(), PROGRAMS.len());
        for program in &PROGRAMS {
            let absent = [program];
            let (listed, advised) = (list(&absent), advice(&absent));
            assert!(listed.contains(program.name) && listed.contains(program.why), "{listed}");
            assert!(advised.contains(&format!("apt-get install {}\n", program.package)), "{advised}");
        }
    }

    #[test]
    fn a_package_that_holds_several_programs_is_named_once() {
        let absent: Vec<_> = PROGRAMS.iter().filter(|program| program.package == "util-linux").collect();
        assert!(absent.len() > 1 && advice(&absent).contains("install util-linux\n"), "{}", advice(&absent));
    }
}
