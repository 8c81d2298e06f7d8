//! Programs that tests need: found on `PATH`, or a message that names what to install.

use std::path::{Path, PathBuf};

/// The path of the program called `name`. `packages` says what to install where it is missing.
///
/// # Panics
/// If no folder of `PATH` holds an executable file of that name: a test that needs it fails, it is never skipped.
pub fn find(name: &str, packages: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(&path, name).unwrap_or_else(|| panic!("{}", missing(name, packages)))
}

/// The JavaScript runtime.
///
/// # Panics
/// If it is not installed.
pub fn node() -> PathBuf {
    find("node", "package nodejs on Debian and Ubuntu, version 18 or newer")
}

/// The package manager of the JavaScript runtime.
///
/// # Panics
/// If it is not installed.
pub fn npm() -> PathBuf {
    find("npm", "package npm on Debian and Ubuntu")
}

/// The SQLite shell.
///
/// # Panics
/// If it is not installed.
pub fn sqlite3() -> PathBuf {
    find("sqlite3", "package sqlite3 on Debian and Ubuntu")
}

/// The version control program; OpenCode's projects are git repositories.
///
/// # Panics
/// If it is not installed.
pub fn git() -> PathBuf {
    find("git", "package git on Debian and Ubuntu")
}

fn missing(name: &str, packages: &str) -> String {
    format!("the tests need the program `{name}` on PATH and it is not there; install it ({packages})")
}

fn find_in(path: &std::ffi::OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_first_folder_that_has_it_executable() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tool"), "").unwrap();
        let path = std::env::join_paths([folder.path(), Path::new("/bin")]).unwrap();
        assert_eq!(find_in(&path, "tool"), None, "not executable");
        assert_eq!(find_in(&path, "sh"), Some("/bin/sh".into()));
        assert_eq!(find_in("".as_ref(), "sh"), None);
    }

    #[test]
    fn the_message_names_program_and_package() {
        let text = missing("node", "package nodejs");
        assert!(text.contains("`node`") && text.contains("package nodejs"), "{text}");
    }
}
