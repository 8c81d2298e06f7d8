use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, Session, part};

/// What [`without_side_files`] built. The folder can be written again when this is dropped.
#[derive(Debug)]
pub struct WithoutSideFiles {
    /// The database, mode 0444, in a folder of mode 0555.
    pub path: PathBuf,
    /// All that the folder may hold afterwards.
    pub files: Vec<&'static str>,
    folder: PathBuf,
}

/// A WAL-mode database whose log and shared memory are gone (a clean exit), in a folder where nothing may be created (`CodexBar` 2544,
/// ai-engineering-fluency 1340).
///
/// Right: reads work and leave no file, also for a user who may not write there; once a log with frames exists, its rows are seen
/// (a reader that takes the file for immutable would miss them). Root may write in spite of the modes: compare the listing.
pub fn without_side_files(folder: &Path) -> WithoutSideFiles {
    let folder = folder.join("read-only");
    std::fs::create_dir(&folder).expect("make the folder of the case");
    let db = create(&folder, Layout::ReducedV1);
    db.session(&Session::named("ses_a"));
    db.user("msg_a", "ses_a");
    db.part("prt_a", "msg_a", "ses_a", &part::text("only in the main file"));
    let path = db.close();
    set_permissions(&path, Permissions::from_mode(0o444)).expect("make the database read-only");
    set_permissions(&folder, Permissions::from_mode(0o555)).expect("make the folder read-only");
    WithoutSideFiles { path, files: vec!["opencode.db"], folder }
}

impl WithoutSideFiles {
    /// Lets the database be written again.
    pub fn unlock(&self) {
        set_permissions(&self.folder, Permissions::from_mode(0o755)).expect("make the folder writable");
        set_permissions(&self.path, Permissions::from_mode(0o644)).expect("make the database writable");
    }
}

impl Drop for WithoutSideFiles {
    fn drop(&mut self) {
        // Otherwise a temporary folder around it could not be removed; where that fails the folder's own removal says so.
        let _restored = set_permissions(&self.folder, Permissions::from_mode(0o755));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_in_write_ahead_mode_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        let case = without_side_files(folder.path());
        assert_eq!(std::fs::read(&case.path).unwrap()[18], 2, "write version of the header");
        let names: Vec<_> = case.folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["opencode.db"]);
    }
}
