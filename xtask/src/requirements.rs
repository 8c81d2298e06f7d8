//! What the tests need besides the Rust toolchain.

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::stage::{exists, stage};

/// A program, and the package that has it on Debian and Ubuntu.
struct Program {
    name: &'static str,
    package: &'static str,
    why: &'static str,
}

const PROGRAMS: [Program; 7] = [
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
    Program { name: "script", package: "bsdutils", why: "runs the program on a terminal" },
];

/// Makes sure that every program is there: on Debian and Ubuntu as root by installing it, elsewhere by saying what to install.
pub(crate) fn ensure() -> Result<()> {
    let absent = missing();
    if absent.is_empty() {
        return Ok(());
    }
    let installed = if is_debian() && is_root() && exists("apt-get") { install(&absent) } else { Ok(()) };
    let absent = missing();
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

fn missing() -> Vec<&'static Program> {
    PROGRAMS.iter().filter(|program| !exists(program.name)).collect()
}

fn list(absent: &[&Program]) -> String {
    let lines: Vec<_> =
        absent.iter().map(|program| format!("  {:8} {}\n", program.name, program.why)).collect();
    lines.concat()
}

fn advice(absent: &[&Program]) -> String {
    let packages: Vec<_> = absent.iter().map(|program| program.package).collect();
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
    fn a_missing_program_is_named_with_its_package_and_reason() {
        let absent = [&PROGRAMS[3]];
        assert!(list(&absent).contains("node"), "{}", list(&absent));
        assert!(advice(&absent).contains("apt-get install nodejs"), "{}", advice(&absent));
    }
}
