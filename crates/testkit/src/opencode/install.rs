use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::program;

/// The package that holds the program.
pub const PACKAGE: &str = "opencode-linux-x64";

/// The version that the facts were checked with.
pub const VERSION: &str = "1.18.34";

/// The program, installed by `npm` on first use into `$HEADWATER_TEST_CACHE`, or `target/test-cache` without it.
///
/// # Panics
/// If it cannot be had, or is of another version; the message names what is missing.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| installed(&cache()))
}

fn cache() -> PathBuf {
    let set = std::env::var_os("HEADWATER_TEST_CACHE").filter(|value| !value.is_empty());
    set.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-cache"), PathBuf::from)
}

fn installed(cache: &Path) -> PathBuf {
    let platform = (std::env::consts::OS, std::env::consts::ARCH);
    assert_eq!(
        platform,
        ("linux", "x86_64"),
        "the tests drive the package {PACKAGE}@{VERSION}, which is for this platform"
    );
    fs::create_dir_all(cache).expect("make the test cache");
    // Several test programs may come here at once; the lock ends with the file.
    let lock = File::create(cache.join("opencode.lock")).expect("open the lock of the test cache");
    lock.lock().expect("lock the test cache");
    let folder = cache.join(format!("opencode-{VERSION}"));
    let binary = folder.join("node_modules").join(PACKAGE).join("bin/opencode");
    if !binary.exists() {
        install(cache, &folder);
    }
    assert!(
        binary.exists(),
        "{PACKAGE}@{VERSION} holds no bin/opencode; remove {} and try again",
        folder.display()
    );
    let output = Command::new(&binary)
        .arg("--version")
        .env("HOME", cache)
        .output()
        .unwrap_or_else(|error| panic!("start {}: {error}", binary.display()));
    let version = String::from_utf8_lossy(&output.stdout);
    assert_eq!(version.trim(), VERSION, "version of {}", binary.display());
    binary
}

/// Installs beside the final place and renames, so that a killed run leaves nothing half done under the final name.
fn install(cache: &Path, folder: &Path) {
    let part = cache.join(format!("opencode-{VERSION}.part"));
    if part.exists() {
        fs::remove_dir_all(&part).expect("remove an unfinished installation");
    }
    fs::create_dir(&part).expect("make the folder of the installation");
    let package = format!("{PACKAGE}@{VERSION}");
    let output = Command::new(program::npm())
        .args([
            "install",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--loglevel=error",
            "--prefix",
        ])
        .arg(&part)
        .arg(&package)
        .output()
        .expect("start npm");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the tests need the real OpenCode, and `npm install {package}` failed: {errors}"
    );
    fs::rename(&part, folder).expect("move the installation to its place");
}
