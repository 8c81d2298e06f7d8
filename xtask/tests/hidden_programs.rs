//! `cargo xtask test` where a program that the tests need is not there: it fails before anything else and says what is missing.
#![expect(clippy::expect_used, reason = "a function beside the test: a scene that cannot be set up fails it")]

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each of these must be named where it is hidden. A test that needs another one adds it here and to `src/requirements.rs`. Not among them is
/// PostgreSQL's `initdb`, which is looked for beyond PATH.
const NEEDED: [&str; 11] =
    ["cc", "git", "sqlite3", "node", "npm", "setpriv", "prlimit", "unshare", "script", "strace", "kill"];

/// A folder that holds a link to each needed program but `hidden`, and nothing else: no `apt-get` either.
fn path_without(hidden: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("without-{hidden}"));
    // Left by an earlier run.
    let _absent = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("make a folder for links");
    let path = env::var_os("PATH").expect("PATH is set");
    for name in NEEDED.into_iter().filter(|name| *name != hidden) {
        let found = env::split_paths(&path).map(|place| place.join(name)).find(|program| program.is_file());
        symlink(found.unwrap_or_else(|| panic!("{name} is on PATH")), folder.join(name))
            .expect("make a link");
    }
    folder
}

#[test]
fn a_hidden_program_fails_the_command_and_is_named() {
    for hidden in NEEDED {
        let folder = path_without(hidden);
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("test")
            .env("PATH", &folder)
            // Where it were not noticed, no test would be run in a test.
            .env("CARGO", "cargo-must-not-be-called")
            .output()
            .expect("start xtask");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{hidden}: {told}");
        assert!(told.contains(&format!("\n  {hidden} ")), "{hidden}: {told}");
        assert!(told.contains("apt-get install"), "{hidden}: {told}");
        for other in NEEDED.into_iter().filter(|name| *name != hidden) {
            assert!(!told.contains(&format!("\n  {other} ")), "{hidden}: {told}");
        }
        fs::remove_dir_all(folder).expect("remove the links");
    }
}
