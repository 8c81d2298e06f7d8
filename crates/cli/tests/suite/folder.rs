//! Everything a folder holds, to prove that a command left it as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One entry of a folder.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Folder { mode: u32 },
    File { mode: u32, bytes: Vec<u8> },
    Link(PathBuf),
    Other,
}

/// Names, modes and contents of everything below a folder.
#[derive(PartialEq, Eq)]
pub(crate) struct Contents(BTreeMap<PathBuf, Entry>);

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Contents {
    /// Reads everything below `folder`.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut entries = BTreeMap::new();
        collect(folder, &mut entries);
        Self(entries)
    }
}

fn collect(folder: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    for found in fs::read_dir(folder).expect("a folder that can be listed") {
        let path = found.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("an entry that exists");
        let mode = metadata.permissions().mode();
        let entry = if metadata.is_dir() {
            collect(&path, entries);
            Entry::Folder { mode }
        } else if metadata.is_file() {
            Entry::File { mode, bytes: fs::read(&path).expect("a file that can be read") }
        } else if metadata.is_symlink() {
            Entry::Link(fs::read_link(&path).expect("a link"))
        } else {
            Entry::Other
        };
        entries.insert(path, entry);
    }
}
