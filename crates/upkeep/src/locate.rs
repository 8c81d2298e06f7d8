//! Where OpenCode keeps its databases, by OpenCode's own rules (fact A1), and where Headwater keeps its state.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use headwater_model::{ByteCount, UnixMillis};
use serde::Serialize;

mod rules;

pub use rules::{
    Environment, Reason, StandardPlaces, TargetError, channel_file_name, is_database_name, target,
};

/// A database file that OpenCode may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its path.
    pub path: PathBuf,
    /// Size of the database.
    pub bytes: ByteCount,
    /// Size of the log beside it, zero where there is none.
    pub log_bytes: ByteCount,
    /// When the database or its log was last written, milliseconds since 1970.
    pub modified: Option<UnixMillis>,
    /// Whether it is the one used when none is named.
    pub is_default: bool,
}

/// A folder or file beside the database that grows on its own (fact A1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    /// Its path.
    pub path: PathBuf,
    /// What OpenCode keeps there.
    pub holds: &'static str,
}

/// Everything that `headwater locate` tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located {
    /// The database used when none is named.
    pub path: PathBuf,
    /// Why it is that one.
    pub reason: Reason,
    /// Whether it exists.
    pub exists: bool,
    /// OpenCode's data folder.
    pub data_folder: PathBuf,
    /// Where Headwater keeps its state (receipts, retention).
    pub state_folder: PathBuf,
    /// Every database found in the data folder, and the default wherever it lies; sorted by path.
    pub candidates: Vec<Candidate>,
    /// What lies beside and exists, sorted by path.
    pub neighbours: Vec<Neighbour>,
}

/// Why no database can be located.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell where OpenCode keeps its database: {0}")]
pub struct LocateError(pub TargetError);

/// Finds the default database, every other candidate, and the folders beside them. Looks only at names, sizes and times.
///
/// A data folder that is missing or cannot be listed gives no candidates, not an error.
///
/// # Errors
/// [`LocateError`] where the environment names no place or names a database in memory.
pub fn database(environment: &Environment) -> Result<Located, LocateError> {
    let places = environment.places().map_err(LocateError)?;
    let names = names_in(&places.data_folder);
    let chosen = target(environment, &names).map_err(LocateError)?;
    let mut paths: Vec<PathBuf> = names
        .iter()
        .filter(|name| name.to_str().is_some_and(is_database_name))
        .map(|name| places.data_folder.join(name))
        .collect();
    if !paths.contains(&chosen.path) {
        paths.push(chosen.path.clone());
    }
    paths.sort();
    let candidates: Vec<Candidate> =
        paths.iter().filter_map(|path| candidate(path, *path == chosen.path)).collect();
    Ok(Located {
        exists: candidates.iter().any(|found| found.is_default),
        neighbours: neighbours(&places.data_folder),
        path: chosen.path,
        reason: chosen.reason,
        data_folder: places.data_folder,
        state_folder: places.state_folder,
        candidates,
    })
}

fn names_in(folder: &Path) -> Vec<OsString> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

fn candidate(path: &Path, is_default: bool) -> Option<Candidate> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut log_path = path.as_os_str().to_owned();
    log_path.push("-wal");
    let log = fs::metadata(PathBuf::from(log_path)).ok();
    let modified = log.as_ref().and_then(modified).max(modified(&found));
    Some(Candidate {
        path: path.to_owned(),
        bytes: ByteCount::new(found.len()),
        log_bytes: ByteCount::new(log.map_or(0, |log| log.len())),
        modified,
        is_default,
    })
}

fn modified(metadata: &fs::Metadata) -> Option<UnixMillis> {
    use std::os::unix::fs::MetadataExt;
    let ms = metadata.mtime().checked_mul(1000)?.checked_add(metadata.mtime_nsec() / 1_000_000)?;
    Some(UnixMillis::new(ms))
}

/// What OpenCode keeps beside its database (fact A1), by name inside the data folder.
pub const NEIGHBOURS: [(&str, &str); 5] = [
    ("log", "logs"),
    ("repos", "clones of repositories"),
    ("snapshot", "git objects of each project's files, for revert"),
    ("storage", "patches of reverted sessions, and rows of versions before the database"),
    ("tool-output", "full text of cut tool outputs, kept 7 days"),
];

fn neighbours(data_folder: &Path) -> Vec<Neighbour> {
    NEIGHBOURS
        .iter()
        .map(|&(name, holds)| Neighbour { path: data_folder.join(name), holds })
        .filter(|neighbour| neighbour.path.exists())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_carry_size_time_log_and_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("opencode");
        fs::create_dir_all(data.join("snapshot")).unwrap();
        fs::create_dir(data.join("opencode-folder.db")).unwrap();
        for (name, bytes) in [
            ("opencode.db", 5),
            ("opencode.db-wal", 7),
            ("opencode.db-shm", 1),
            ("opencode-dev.db", 3),
            ("opencode.db.bak", 9),
            ("notes.db", 9),
        ] {
            fs::write(data.join(name), vec![0; bytes]).unwrap();
        }
        let environment = Environment {
            home: Some("/home/user".into()),
            xdg_data_home: Some(folder.path().into()),
            ..Environment::default()
        };
        let located = database(&environment).unwrap();
        let seen: Vec<_> = located
            .candidates
            .iter()
            .map(|found| {
                let name = found.path.file_name().unwrap().to_str().unwrap();
                (name, found.bytes.get(), found.log_bytes.get(), found.is_default)
            })
            .collect();
        assert_eq!(seen, [("opencode-dev.db", 3, 0, false), ("opencode.db", 5, 7, true)]);
        assert!(located.exists);
        assert!(located.candidates.iter().all(|found| found.modified > Some(UnixMillis::new(0))));
        assert_eq!(located.neighbours.len(), 1);
        assert_eq!(located.neighbours[0].path, data.join("snapshot"));
        assert_eq!(located.state_folder, Path::new("/home/user/.local/state/headwater"));
    }

    #[test]
    fn a_missing_data_folder_names_the_place_where_the_database_would_be() {
        let environment = Environment {
            xdg_data_home: Some("/nowhere/data".into()),
            home: Some("/h".into()),
            ..Environment::default()
        };
        let located = database(&environment).unwrap();
        assert_eq!(located.path, Path::new("/nowhere/data/opencode/opencode.db"));
        assert!(!located.exists);
        assert_eq!(located.candidates, []);
    }

    #[test]
    fn a_default_outside_the_data_folder_is_a_candidate_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("elsewhere.sqlite");
        fs::write(&path, b"x").unwrap();
        let environment = Environment {
            home: Some("/nowhere".into()),
            opencode_db: Some(path.clone().into()),
            ..Environment::default()
        };
        let located = database(&environment).unwrap();
        assert_eq!(located.reason, Reason::NamedByEnvironment);
        assert_eq!(located.candidates.iter().map(|found| &found.path).collect::<Vec<_>>(), [&path]);
    }
}
