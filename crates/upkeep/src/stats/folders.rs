//! Sizes of the folders beside the database.

use std::fs;
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;

use super::report::FolderFigures;

/// The folders that OpenCode fills beside its database (fact A1).
const FOLDERS: &[(&str, &str)] = &[
    ("log", "logs"),
    ("snapshot", "git objects of each project's files, for revert"),
    ("storage/session_diff", "patches of reverted sessions"),
    ("tool-output", "full text of cut tool outputs, kept 7 days"),
];

/// Most entries of one folder that are counted. A snapshot store holds some ten thousand objects; a walk must end on any file system.
const ENTRIES_MAX: u64 = 1_000_000;

/// The folders that exist in the folder of `database`.
pub(super) fn beside(database: &Path) -> Vec<FolderFigures> {
    let Some(folder) = database.parent() else { return Vec::new() };
    FOLDERS
        .iter()
        .filter(|(name, _)| fs::symlink_metadata(folder.join(name)).is_ok_and(|found| found.is_dir()))
        .map(|(name, holds)| measure(name, holds, folder.join(name)))
        .collect()
}

fn measure(name: &'static str, holds: &'static str, root: PathBuf) -> FolderFigures {
    let mut figures = FolderFigures { name, holds, files: 0, bytes: ByteCount::ZERO, is_complete: true };
    let mut open = vec![root];
    let mut entries = 0;
    while let Some(folder) = open.pop() {
        let Ok(listing) = fs::read_dir(&folder) else {
            figures.is_complete = false;
            continue;
        };
        for entry in listing {
            entries += 1;
            if entries > ENTRIES_MAX {
                figures.is_complete = false;
                return figures;
            }
            // The metadata of an entry is that of a symlink itself.
            let Ok((entry, found)) = entry.and_then(|entry| entry.metadata().map(|found| (entry, found)))
            else {
                figures.is_complete = false;
                continue;
            };
            if found.is_dir() {
                open.push(entry.path());
            } else if found.is_file() {
                figures.files += 1;
                figures.bytes += ByteCount::new(found.len());
            }
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("snapshot/p/h/objects")).unwrap();
        fs::create_dir(root.join("elsewhere")).unwrap();
        fs::write(root.join("elsewhere/big"), vec![0; 5000]).unwrap();
        fs::write(root.join("snapshot/p/h/objects/a"), vec![0; 300]).unwrap();
        fs::write(root.join("snapshot/b"), vec![0; 40]).unwrap();
        std::os::unix::fs::symlink(root, root.join("snapshot/loop")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("tool-output")).unwrap();
        let found = beside(&root.join("opencode.db"));
        let bytes: Vec<_> =
            found.iter().map(|folder| (folder.name, folder.files, folder.bytes.get())).collect();
        assert_eq!(bytes, [("snapshot", 2, 340)]);
        assert!(found[0].is_complete);
    }
}
